"""The tables and figures of the paper, one command each: ``ngp reproduce table1``."""
