package blas

import (
	"os"
	"slices"
	"testing"
)

// TestChooseKernels checks that chooseKernels does not change OPENBLAS_CORETYPE, the type of
// processor whose kernels OpenBLAS uses, if the user has set it, and that it sets one of two
// values, or none, otherwise.
func TestChooseKernels(t *testing.T) {
	const variable = "OPENBLAS_CORETYPE"
	t.Setenv(variable, "Nehalem")
	if err := chooseKernels(); err != nil || os.Getenv(variable) != "Nehalem" {
		t.Errorf("OPENBLAS_CORETYPE = %q (error %v), want Nehalem, as the user has set it", os.Getenv(variable), err)
	}
	if err := os.Unsetenv(variable); err != nil { // Setenv above restores it
		t.Fatal(err)
	}
	if err := chooseKernels(); err != nil || !slices.Contains([]string{"", "Haswell", "SkylakeX"}, os.Getenv(variable)) {
		t.Errorf("OPENBLAS_CORETYPE = %q (error %v), want Haswell, SkylakeX or none", os.Getenv(variable), err)
	}
}
