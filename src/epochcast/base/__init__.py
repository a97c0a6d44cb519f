"""What every room uses: caches, bounded documents, atomic files, child processes, tables, and how answers show
themselves."""
