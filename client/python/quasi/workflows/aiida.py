"""A calculation of AiiDA that runs ``quasi run``, and the parser of its results.

    builder = CalculationFactory("quasi").get_builder()
    builder.code = load_code("quasi@cluster")          # the client: /usr/bin/quasi
    builder.kind = Str("thermal")
    builder.deck = FolderData(tree="/data/silicon")
    builder.settings = Dict({"ngrid": [16, 16, 16], "T": 300})

Not tested against AiiDA, which Debian 12 does not package.
"""

from __future__ import annotations

from typing import Any

from quasi.result import ResultError
from quasi.workflows import command_words, outputs_of

RETRIEVED = ["out/summary.json", "out/result.h5", "out/table.txt"]

try:
    from aiida.common import CalcInfo, CodeInfo
    from aiida.engine import CalcJob
    from aiida.orm import Dict, FolderData, SinglefileData, Str
    from aiida.parsers import Parser
except ImportError as missing:
    raise ResultError("AiiDA is not installed; install it: pip install aiida-core") from missing


class QuasiCalculation(CalcJob):  # type: ignore[misc]
    """One job of Quasi: inputs ``kind``, ``deck`` and ``settings``; outputs the summary and
    ``result.h5``."""

    @classmethod
    def define(cls, spec: Any) -> None:
        """Names inputs, outputs and ends of the calculation."""
        super().define(spec)
        spec.input("kind", valid_type=Str, help="thermal, mosfet or gw")
        spec.input("deck", valid_type=FolderData, help="the files of the deck")
        spec.input("settings", valid_type=Dict, default=lambda: Dict({}),
                   help="overrides of keys; a dot in a key is written as two underscores")
        spec.input("metadata.options.parser_name", valid_type=str, default="quasi")
        spec.output("summary", valid_type=Dict)
        spec.output("result", valid_type=SinglefileData)
        spec.exit_code(310, "ERROR_NO_RESULT", message="the job did not end with a result")

    def prepare_for_submission(self, folder: Any) -> Any:
        """Copies the deck into the folder ``deck`` and names the command."""
        deck = self.inputs.deck
        for root, _, names in deck.base.repository.walk():
            for name in names:
                inside = str(root / name)
                target = folder.get_subfolder(f"deck/{root}", create=True)
                with deck.base.repository.open(inside, "rb") as content:
                    target.create_file_from_filelike(content, name, mode="wb")
        code = CodeInfo()
        code.code_uuid = self.inputs.code.uuid
        code.cmdline_params = command_words(self.inputs.kind.value, "deck",
                                            self.inputs.settings.get_dict())
        code.stdout_name = "quasi.out"
        info = CalcInfo()
        info.codes_info = [code]
        info.retrieve_list = [(name, ".", 1) for name in RETRIEVED]
        return info


class QuasiParser(Parser):  # type: ignore[misc]
    """Reads ``summary.json`` and keeps ``result.h5``."""

    def parse(self, **kwargs: Any) -> Any:
        """Stores the outputs; returns an exit code where the job left no result."""
        try:
            with self.retrieved.base.repository.as_path() as folder:
                self.out("summary", Dict(outputs_of(folder)))
                self.out("result", SinglefileData(folder / "result.h5"))
        except (ResultError, FileNotFoundError):
            return self.exit_codes.ERROR_NO_RESULT
        return None
