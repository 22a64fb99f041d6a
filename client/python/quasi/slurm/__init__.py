"""Pools of workers that Slurm provides: allocations are submitted while jobs wait, and no others.

Begin here: ``controller`` decides, ``ledger`` remembers over crashes, ``tools`` runs Slurm's
commands, ``output`` reads what they print, and ``__main__`` is the program ``quasi-slurm``.
"""
