"""What a person does to eval cases and configs, as edits of the files' JSON data.

Every function takes parsed JSON of a whole file and gives the edits that lead to what was asked for; they
are to be applied in their order, each to what the one before it left. The data is never changed. Existing
keys keep their spelling, new ones follow it; what was not asked for is not touched. Cases, turns, calls and
parts are named by their index, counted from 0. An EditError says why something cannot be done.
"""
