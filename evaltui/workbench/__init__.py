"""The application without a screen: what is selected, what ran, what can be done. Never imports Textual."""
