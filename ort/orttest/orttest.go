// Package orttest gives tests the ONNX Runtime library.
package orttest

import (
	"testing"

	"github.com/noether-ml/noether/ort"
)

// Load returns the runtime of the test's process. Where no library is found, or it does not fit, the test fails with what
// to install: nearly everything rests on it.
func Load(t testing.TB) *ort.Runtime {
	t.Helper()
	path, tried, err := ort.Find("")
	if err != nil {
		t.Fatalf("%v (tried %q)", err, tried)
	}
	rt, err := ort.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}
