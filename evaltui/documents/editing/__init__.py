"""Editors of eval cases and configs, which change JSON values.

An editor reads the parsed JSON of a whole file, and changes it if it is a copy (`SetEditor.copied`,
`copy_of`); `edits_of` finds the changes of the text. Existing keys keep their spelling, new keys follow it;
other data is not changed. Cases, turns, calls and parts are numbered from 0. EditError has the reason for an
impossible edit.
"""
