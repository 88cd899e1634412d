"""Lesson 12, Can the machine choose for us? Read `search.metropolis` first.

From a model to its operators (`graph`), what each part costs (`costs`), when everything happens (`simulator`), which
strategy is best (`search`), and the program that runs it (`program`). `experiments` sets predictions beside runs.

Source: Jia, Zaharia & Aiken 2018, "Beyond Data and Model Parallelism for Deep Neural Networks" (FlexFlow).
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures
    from .costs.described_costs import described_costs
    from .costs.device_topology import describe
    from .costs.measured_costs import measure_costs
    from .costs.measured_links import measured_topology
    from .experiments import REPORT, WIDE_VGG11, Workload, compare, predicted_seconds, report_costs
    from .graph.configurations import Config, Strategy
    from .graph.example_models import alexnet, transformer_block
    from .graph.operator_graph import OperatorGraph, Window
    from .graph.plain_strategies import choices_of, data_parallel, megatron, on_one_device
    from .graph.read_model import read_model
    from .pictures import fetched_numbers
    from .program.run_program import train_program, train_serial
    from .program.write_program import program_text
    from .search import certificate_check
    from .search.known_ways import known_ways
    from .search.lower_bound import bound_below
    from .search.many_walks import find_strategy
    from .search.proved import search_and_prove, shares_of_work
    from .sentences import (
        bound_text,
        case_text,
        found_text,
        gaps_table,
        gaps_text,
        honesty_text,
        links_text,
        quickest_text,
        ratio_text,
        slow_device_text,
        strategy_text,
        timed_text,
        times_text,
        walks_text,
    )
    from .simulator import simulation_rates
    from .simulator.five_operators import COMPUTE, HandCosts, five_operators, two_convolutions
    from .simulator.program_steps import Costs, Step, compute, exchange, gradient_sums, output_sums
    from .simulator.simulate import Span
    from .simulator.step_tables import make_tables
    from .simulator.task_graph import Task, task_graph

__getattr__, __dir__, __all__ = attach(__name__, __file__)
