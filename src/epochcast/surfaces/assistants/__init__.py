"""The verbs as tools for assistants, over the Model Context Protocol (`epochcast mcp`)."""
