"""Machine fnn+ssm: convolution-SSM layers with filters of cosines and sines, each before a ReLU network (paper D).

Any circuit over tokens compiles to it that the language can write without real numbers that fade: what stands over
the past becomes filters, what is computed at a position becomes rectifiers. No library ships these layers; `module`
gives them as torch modules, in three forms.
"""

from compiler.machines.fnn_ssm.machine import CompiledNetwork, compile_network
from compiler.machines.fnn_ssm.sizes import PaperSizes

__all__ = ["CompiledNetwork", "PaperSizes", "compile_network"]
