package linalg

import (
	"os"
	"slices"
	"testing"
)

// chooseKernels does not change a choice of the user. Otherwise it chooses kernels that the
// processor supports, or none.
func TestChooseKernels(t *testing.T) {
	const variable = "OPENBLAS_CORETYPE"
	t.Setenv(variable, "Nehalem")
	if err := chooseKernels(); err != nil || os.Getenv(variable) != "Nehalem" {
		t.Errorf("the user's choice became %q (%v)", os.Getenv(variable), err)
	}
	if err := os.Unsetenv(variable); err != nil { // Setenv above restores it
		t.Fatal(err)
	}
	if err := chooseKernels(); err != nil || !slices.Contains([]string{"", "Haswell", "SkylakeX"}, os.Getenv(variable)) {
		t.Errorf("kernels %q (%v)", os.Getenv(variable), err)
	}
}
