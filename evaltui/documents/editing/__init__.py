"""What a person does to eval cases and configs, as edits of the files' JSON data.

Every editor looks at the parsed JSON of a whole file, which it never changes, and gives the edits that lead
to what was asked for; they are to be applied in their order, each to what the one before it left. Existing
keys keep their spelling, new ones follow it; what was not asked for is not touched. Cases, turns, calls and
parts are named by their index, counted from 0. An EditError says why something cannot be done.
"""
