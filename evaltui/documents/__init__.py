"""Case files and configs as text: edits, merging, saving and recovery that leave all else to the byte."""
