"""The screens: the Textual app for the workbench."""
