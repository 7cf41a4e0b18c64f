// Package orttest loads ONNX Runtime for tests.
//
//	rt := orttest.Load(t)
package orttest

import (
	"testing"

	"github.com/noether-ml/noether/engine/ort"
)

// Load returns the runtime of the test process. If no library is found, or its version is not
// supported, the test fails with a message that says what to install.
func Load(t testing.TB) *ort.Runtime {
	t.Helper()
	path, tried, err := ort.Find("") // "": search the usual places, which tried lists
	if err != nil {
		t.Fatalf("%v (tried %q)", err, tried)
	}
	rt, err := ort.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}
