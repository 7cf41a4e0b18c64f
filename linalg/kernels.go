package linalg

import (
	"os"

	"golang.org/x/sys/cpu"
)

// chooseKernels names the kernels of OpenBLAS by what the processor can do, unless OPENBLAS_CORETYPE does. It comes before the
// library is loaded, which reads the variable then.
//
// OpenBLAS chooses by the model of the processor. One that is newer than the library gets kernels for SSE3 ("Prescott"). With
// version 0.3.21 on a Xeon of 2023 these take nine times as long, and eigenproblems that run side by side fail to converge.
func chooseKernels() error {
	const variable = "OPENBLAS_CORETYPE"
	if _, set := os.LookupEnv(variable); set {
		return nil
	}
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512CD && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return os.Setenv(variable, "SkylakeX")
	case x.HasAVX2 && x.HasFMA:
		return os.Setenv(variable, "Haswell")
	}
	return nil
}
