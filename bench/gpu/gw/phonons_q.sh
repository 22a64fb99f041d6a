#!/bin/bash
# Runs the decks of couplings at four wave vectors (examples/gw/*-phonons-q.toml): silicon,
# germanium and gallium arsenide, by plasmon poles and at full frequency.
#
#   bench/gpu/gw/phonons_q.sh ENGINE [DEVICE]
#
#   METHODS="hl-gpp contour"              methods of sigma.method
#   CRYSTALS="silicon germanium gaas"     decks
#   FOLDER=DIR                            place of the results, phonons_q beside ENGINE by default
#
# It prints the seconds of each job and the couplings of the valence top, with their enhancement by
# GW, as rows of a Markdown table. Exit status: 0, all jobs ended and kept their goals of 60 s
# (plasmon poles) and 600 s (full frequency); 1, not so.
exec python3 "$(dirname "$0")/phonons_q.py" "$@"
