#!/usr/bin/env python3
"""Writes each frame of an extended XYZ file as other programs print forces.

usage: write_forces.py FORMAT FRAMES.xyz DIRECTORY [VARIANT ...]

FORMAT is outcar, espresso or espresso-xml. The files are DIRECTORY/0, DIRECTORY/1 and so on.
Variants: unconverged, several-steps, truncated, no-forces.
"""
import math
import pathlib
import sys

BOHR_ANGSTROM = 0.529177210903
RYDBERG_EV = 13.605693122994
DASHES = " " + "-" * 83


def frames(path):
    """Yields lattice, symbols, positions and forces of each frame."""
    lines = iter(pathlib.Path(path).read_text().splitlines())
    for count in lines:
        header = next(lines)
        numbers = [float(x) for x in header.split('Lattice="')[1].split('"')[0].split()]
        lattice = [numbers[0:3], numbers[3:6], numbers[6:9]]
        words = header.split("Properties=")[1].split()[0].split(":")
        column, first = {}, 0
        for name, width in zip(words[0::3], words[2::3]):
            column[name] = first
            first += int(width)
        rows = [next(lines).split() for _ in range(int(count))]

        def vectors(name):
            at = column[name]
            return [[float(x) for x in row[at:at + 3]] for row in rows]

        yield lattice, [row[column["species"]] for row in rows], vectors("pos"), vectors("forces")


def runs_of(symbols):
    """VASP counts atoms by POTCAR. The longest run is split into two POTCARs of one element."""
    runs = []
    for symbol in symbols:
        if runs and runs[-1][0] == symbol:
            runs[-1][1] += 1
        else:
            runs.append([symbol, 1])
    at = max(range(len(runs)), key=lambda i: runs[i][1])
    symbol, count = runs[at]
    if count > 1:
        runs[at:at + 1] = [[symbol, count // 2], [symbol, count - count // 2]]
    return runs


def outcar(lattice, symbols, positions, forces, variants):
    runs = runs_of(symbols)
    out = [" vasp.6.3.2 27Jun22 (build Jul 01 2022 10:11:12) complex", ""]
    for symbol, _ in runs:
        out += [f"   VRHFIN ={symbol}: s2p2", f"   TITEL  = PAW_PBE {symbol} 05Jan2001"]
    out += ["   ions per type =          " + "".join(f"{count:6d}" for _, count in runs),
            "   NELM   =     60;   NELMIN=  2; NELMDL= -5     # of ELM steps"]
    n_steps = 2 if "several-steps" in variants else 1
    for step in range(1, n_steps + 1):
        last = step == n_steps
        # Steps before the last have atoms and forces of another geometry.
        shift = 0.0 if last else 0.5
        for loop in range(1, 4):
            out.append("-" * 39 + f" Iteration {step:6d}({loop:4d})  " + "-" * 39)
        if not (last and "unconverged" in variants):
            out.append("-" * 24 + " aborting loop because EDIFF is reached " + "-" * 40)
        out.append("      direct lattice vectors                 reciprocal lattice vectors")
        for a in lattice:
            out.append("   " + "".join(f"{x:13.9f}" for x in a) + "   "
                       + "".join(f"{x:13.9f}" for x in (0.1, -0.2, 0.3)))
        if "no-forces" in variants:
            break
        out += ["", " POSITION" + " " * 39 + "TOTAL-FORCE (eV/Angst)", DASHES]
        for position, force in zip(positions, forces):
            out.append("".join(f"{x + shift:13.5f}" for x in position) + "   "
                       + "".join(f"{x + shift:14.6f}" for x in force))
        if last and "truncated" in variants:
            return "\n".join(out[:-1]) + "\n"
        out += [DASHES, "    total drift:                               -0.000000      0.000000"]
    return "\n".join(out) + "\n"


def espresso(lattice, symbols, positions, forces, variants):
    alat_bohr = float(f"{math.hypot(*lattice[0]) / BOHR_ANGSTROM:.6f}")
    alat = alat_bohr * BOHR_ANGSTROM
    out = ["", "     Program PWSCF v.7.2 starts on 27Apr2023 at 11:59:30", "",
           f"     lattice parameter (alat)  = {alat_bohr:11.4f}  a.u.",
           f"     number of atoms/cell      = {len(symbols):11d}", "",
           f"     celldm(1)= {alat_bohr:10.6f}  celldm(2)=   0.000000  celldm(3)=   0.000000",
           "     celldm(4)=   0.000000  celldm(5)=   0.000000  celldm(6)=   0.000000", "",
           "     crystal axes: (cart. coord. in units of alat)"]
    for i, a in enumerate(lattice):
        numbers = "".join(f"{x / alat:11.6f}" for x in a)
        out.append(f"               a({i + 1}) = ({numbers} )  ")
    out += ["", "   Cartesian axes", "",
            "     site n.     atom                  positions (alat units)"]
    for i, (symbol, position) in enumerate(zip(symbols, positions)):
        out.append(f"     {i + 1:5d}           {symbol + '1':6s}  tau({i + 1:4d}) = ("
                   + "".join(f"{x / alat:12.7f}" for x in position) + "  )")
    out += ["", "     number of k points=     4", ""]
    for _ in range(2 if "several-steps" in variants else 1):
        out += ["     convergence NOT achieved after 100 iterations: stopping"
                if "unconverged" in variants else
                "     convergence has been achieved in  11 iterations", ""]
        if "no-forces" in variants:
            continue
        unit = RYDBERG_EV / BOHR_ANGSTROM
        out += ["     Forces acting on atoms (cartesian axes, Ry/au):", ""]
        rows = [f"     atom {i + 1:4d} type  1   force = " + "".join(f"{x / unit:14.8f}" for x in f)
                for i, f in enumerate(forces)]
        if "truncated" in variants:
            return "\n".join(out + rows[:-1]) + "\n"
        out += rows + ["     The non-local contrib.  to forces"]
        out += [f"     atom {i + 1:4d} type  1   force =     0.10000000    0.20000000    0.30000000"
                for i in range(len(forces))]
        out += ["", "     Total force =     0.234452     Total SCF correction =     0.000071", ""]
    return "\n".join(out) + "\n"


def espresso_xml(lattice, symbols, positions, forces, variants):
    def numbers(values):
        return " ".join(f"{x:.15e}" for x in values)

    def structure(shift):
        atoms = [f'        <atom name="{symbol}1" index="{i + 1}">'
                 + numbers((x + shift) / BOHR_ANGSTROM for x in position) + "</atom>"
                 for i, (symbol, position) in enumerate(zip(symbols, positions))]
        cell = [f"        <a{i + 1}>" + numbers(x / BOHR_ANGSTROM for x in a) + f"</a{i + 1}>"
                for i, a in enumerate(lattice)]
        return [f'    <atomic_structure nat="{len(symbols)}" alat="1.0e1">',
                "      <atomic_positions>", *atoms, "      </atomic_positions>", "      <cell>",
                *cell, "      </cell>", "    </atomic_structure>"]

    hartree_per_bohr = 2.0 * RYDBERG_EV / BOHR_ANGSTROM
    converged = "false" if "unconverged" in variants else "true"
    out = ['<?xml version="1.0" encoding="UTF-8"?>',
           '<qes:espresso xmlns:qes="http://www.quantum-espresso.org/ns/qes/qes-1.0" '
           'Units="Hartree atomic units">', "  <input>", *structure(0.3), "  </input>",
           "  <output>", "    <convergence_info><scf_conv>",
           f"      <convergence_achieved>{converged}</convergence_achieved>",
           "    </scf_conv></convergence_info>", *structure(0.0)]
    if "no-forces" not in variants:
        out.append(f'    <forces rank="2" dims="3 {len(forces)}" order="F">')
        rows = ["      " + numbers(x / hartree_per_bohr for x in force) for force in forces]
        if "truncated" in variants:
            return "\n".join(out + rows[:-1]) + "\n"
        out += rows + ["    </forces>"]
    return "\n".join(out + ["  </output>", "</qes:espresso>"]) + "\n"


def main():
    form, source, directory, *variants = sys.argv[1:]
    write = {"outcar": outcar, "espresso": espresso, "espresso-xml": espresso_xml}[form]
    target = pathlib.Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    for number, frame in enumerate(frames(source)):
        (target / str(number)).write_text(write(*frame, variants))


if __name__ == "__main__":
    main()
