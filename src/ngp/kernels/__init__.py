"""Linear algebra, random layers and the compiled scorer: arrays in, arrays out."""
