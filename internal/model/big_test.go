package model_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// TestModelAbove2GB checks a model with more than 2 GB of weights. Protobuf limits the model file
// to 2 GB, so the weights are in a file beside it. That file is sparse: all weights are zero except
// for the last row, which the model adds to its input.
func TestModelAbove2GB(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a sparse file of 2.2 GB")
	}
	const width, rows = 16, 35_000_000
	const size = 4 * width * rows
	dir := t.TempDir()
	weights, err := os.Create(filepath.Join(dir, "weights.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	if err := weights.Truncate(size); err != nil {
		t.Fatal(err)
	}
	last := make([]byte, 4*width)
	for i := range width {
		copy(last[4*i:], []byte{0, 0, 0x40, 0x40}) // 3 as float32
	}
	if _, err := weights.WriteAt(last, size-int64(len(last))); err != nil {
		t.Skipf("the file system cannot hold a sparse file: %v", err)
	}
	path := filepath.Join(dir, "big.onnx")
	if err := os.WriteFile(path, bigModel(t, width, rows), 0o666); err != nil {
		t.Fatal(err)
	}
	// openLayer opens the model with a session that returns its output.
	_, s := openLayer(t, orttest.Load(t), path, "output")
	out, err := s.NewBuffers(1)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.New(3, 2, width)
	x.Data[5] = 1
	if err := s.Run(t.Context(), []tensor.Tensor{x}, out); err != nil {
		t.Fatal(err)
	}
	for i, v := range out.Layer(0).Data {
		if want := x.Data[i] + 3; v != want {
			t.Fatalf("value %d is %v, want %v", i, v, want)
		}
	}
}

// bigModel returns the file of a model that computes x plus the last row of the weights, which are
// in weights.bin (rows x width).
func bigModel(t *testing.T, width, rows int) []byte {
	t.Helper()
	text := func(key, value string) *pb.StringStringEntryProto {
		return &pb.StringStringEntryProto{Key: &key, Value: &value}
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	row := b.Op("Gather", nil, b.Const("weights", tensor.New(1, width)), b.Int(rows-1))
	b.Output("y", b.Add(b.Input("x", onnx.Float, -1, 3, 2, width), row))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var p pb.ModelProto
	if err := proto.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	// Replace the constant, one row, by the rows in weights.bin.
	w := p.Graph.Initializer[slices.IndexFunc(p.Graph.Initializer, func(w *pb.TensorProto) bool { return w.GetName() == "weights" })]
	w.Dims, w.RawData, w.FloatData, w.DataLocation = []int64{int64(rows), int64(width)}, nil, nil, pb.TensorProto_EXTERNAL.Enum()
	w.ExternalData = []*pb.StringStringEntryProto{text("location", "weights.bin")}
	if raw, err = proto.Marshal(&p); err != nil {
		t.Fatal(err)
	}
	return raw
}
