"""Results as tables, pictures, files and one page: what people read after a replay."""

from memsift.evaluation.report.curves import curves_png
from memsift.evaluation.report.export import from_json, to_csv, to_json, write_json
from memsift.evaluation.report.heat import regret_png
from memsift.evaluation.report.html import write_html
from memsift.evaluation.report.plot import plot_png, plot_svg
from memsift.evaluation.report.speed_plot import speed_png, speed_svg
from memsift.evaluation.report.speed_table import speed_tables
from memsift.evaluation.report.table import markdown_table, results_table

__all__ = [
    "curves_png",
    "from_json",
    "markdown_table",
    "plot_png",
    "plot_svg",
    "regret_png",
    "results_table",
    "speed_png",
    "speed_svg",
    "speed_tables",
    "to_csv",
    "to_json",
    "write_html",
    "write_json",
]
