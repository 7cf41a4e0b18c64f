package rewrite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A model without weights has the same layers (float32 tensors that depend on the input), inputs,
// number of parameters, opset and path. The networks are files of the test data.
func TestWithoutWeights(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cifar_resnet20", "mobilenet_v3_small", "tiny_swin", "tiny_vit"} {
		m, err := onnx.Read(testdata.Path(t, "nets", name, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		before, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		bare := rewrite.WithoutWeights(m)
		if diff := cmp.Diff(m.Layers(), bare.Layers()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(m.Inputs(), bare.Inputs()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if m.Parameters() != bare.Parameters() || m.Opset() != bare.Opset() || m.Path() != bare.Path() {
			t.Errorf("%s: %d parameters in opset %d, want %d in %d", name, bare.Parameters(), bare.Opset(), m.Parameters(), m.Opset())
		}
		emptied := 0
		for i, w := range bare.Proto().Graph.Initializer {
			full := proto.Size(m.Proto().Graph.Initializer[i])
			// Twice the bytes of the largest tensor that keeps its values: 4,096 of 8 bytes.
			if left := proto.Size(w); left > 70_000 {
				t.Errorf("%s: %d of %d bytes of %s remain, want at most 70,000", name, left, full, w.GetName())
			} else if left < full {
				emptied++
			}
		}
		if emptied == 0 {
			t.Errorf("%s has kept all its weights", name)
		}
		if after, err := m.Bytes(); err != nil || len(after) != len(before) {
			t.Errorf("%s: the original model has lost its weights", name)
		}
	}
}
