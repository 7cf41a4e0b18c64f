//go:build cgo

package grad_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testgraph"
	"github.com/noether-ml/noether/onnx/grad"
)

// addRandomGradient adds gradients and directional derivatives (JVP) of a random tensor to a random
// model, which may be malformed. Errors are allowed, but no panic. x and tokens are inputs of the
// model, w and m its weights; the cotangent r, which weights the tensor's elements, is a new input.
func addRandomGradient(t *rapid.T) {
	m := testgraph.Random(t, grad.Operators())
	n := rapid.SampledFrom(m.Nodes()).Draw(t, "of")
	of := rapid.SampledFrom(n.Output).Draw(t, "output")
	o := grad.Options{Of: of, Cotangent: "r", By: []string{"x", "tokens", "w", "m"}}
	_, _ = grad.Add(m, o)
	_, _ = grad.AddJVP(m, o)
}

func TestRandomModels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, addRandomGradient)
}

func FuzzGradient(f *testing.F) { f.Fuzz(rapid.MakeFuzz(addRandomGradient)) }
