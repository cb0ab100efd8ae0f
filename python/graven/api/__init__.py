"""The functions of `import graven`, by what they are about."""
