#include "workers/engine/structure/structure_commands.hpp"

#include <iostream>

namespace quasi {

StructureCommands::StructureCommands(CLI::App& app) {
  displace_ =
      app.add_subcommand("displace", "plan displaced supercells of a crystal for 'thermal'");
  displace_->add_option("POSCAR", poscar_, "the primitive cell, in the format of VASP 5")
      ->required();
  displace_->add_option("--supercell", displacement_.supercell, "repeats along the three vectors")
      ->required();
  displace_->add_option("--order", displacement_.order, "highest order of the constants, 2 to 4")
      ->capture_default_str();
  displace_->add_option("--cutoff-3rd-angstrom", displacement_.cutoff_3rd_angstrom,
                        "largest distance within a triple, for orders 3 and 4");
  displace_->add_option("--cutoff-4th-angstrom", displacement_.cutoff_4th_angstrom,
                        "largest distance within a quartet, for order 4");
  displace_
      ->add_option("--distance-angstrom", displacement_.distance_angstrom,
                   "length of one displacement")
      ->capture_default_str();
  displace_
      ->add_option("--symprec-angstrom", displacement_.symprec_angstrom,
                   "tolerance of the space group")
      ->capture_default_str();
  displace_->add_option("-d,--output", displace_output_, "directory for the plan")
      ->capture_default_str();

  collect_ =
      app.add_subcommand("collect", "make a deck of 'thermal' from forces on a plan's cells");
  collect_->add_option("PLAN", plan_, "directory that displace wrote")->required();
  collect_
      ->add_option("--forces", forces_,
                   "extended XYZ; vasprun.xml or OUTCAR of VASP; output or data-file-schema.xml of "
                   "Quantum ESPRESSO, in the order of the plan; or the built-in potential "
                   "stillinger-weber")
      ->required();
  collect_->add_option("-d,--output", collect_output_, "directory for the deck")
      ->capture_default_str();
}

void StructureCommands::run() const {
  if (*displace_) std::cout << thermal::displace(poscar_, displacement_, displace_output_);
  if (*collect_) std::cout << thermal::collect(plan_, forces_, collect_output_);
}

}  // namespace quasi
