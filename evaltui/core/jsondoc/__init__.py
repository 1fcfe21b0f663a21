"""A JSON file as a document: edits that change only what they mean, with their inverses; merging."""
