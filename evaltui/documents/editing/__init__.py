"""Editors of eval cases and configs, which change their JSON values.

An editor reads the parsed JSON of a whole file, and changes it where that is a copy (`SetEditor.copied`,
`copy_of`); `edits_of` finds what is to be changed in the text. Existing keys keep their spelling, new ones
follow it; what was not asked for is not touched. Cases, turns, calls and parts are named by their index,
counted from 0. An EditError says why something cannot be done.
"""
