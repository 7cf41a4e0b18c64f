package onnx

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx/pb"
)

// TestDecodeEqualsUnmarshal compares decode, which does not copy large weights, with
// proto.Unmarshal, which does: messages with small and large weights, in one piece, in two pieces
// that protobuf merges, and damaged (cut short, or with another byte).
func TestDecodeEqualsUnmarshal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		for range rapid.IntRange(1, 2).Draw(t, "pieces") { // concatenated messages merge
			p := &pb.ModelProto{DocString: new("model"), Graph: &pb.GraphProto{Name: new("graph")}}
			for i := range rapid.IntRange(0, 4).Draw(t, "weights") {
				w := &pb.TensorProto{Name: new(string(rune('a' + i))), Dims: []int64{int64(i)}, DataType: new(int32(Float))}
				switch rapid.IntRange(0, 3).Draw(t, "kind") {
				case 0:
					w.FloatData = []float32{1, 2}
				case 1:
					w.RawData = bytes.Repeat([]byte{byte(i)}, 8)
				default: // large enough to share memory with data
					w.RawData = bytes.Repeat([]byte{1, byte(i)}, minShared)
				}
				p.Graph.Initializer = append(p.Graph.Initializer, w)
			}
			raw, err := proto.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, raw...)
		}
		if len(data) > 0 && rapid.Bool().Draw(t, "damaged") {
			if i := rapid.IntRange(0, len(data)-1).Draw(t, "at"); rapid.Bool().Draw(t, "cut") {
				data = data[:i]
			} else {
				data[i] ^= rapid.Byte().Draw(t, "flip")
			}
		}
		want := new(pb.ModelProto)
		wantErr := proto.Unmarshal(data, want)
		got, err := decode(bytes.Clone(data))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		if err == nil && !proto.Equal(got, want) {
			t.Fatal("the messages differ")
		}
	})
}

// TestDecodeSharesWeights checks that large weights are not copied.
func TestDecodeSharesWeights(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	data, err := proto.Marshal(&pb.ModelProto{Graph: &pb.GraphProto{Initializer: []*pb.TensorProto{{RawData: make([]byte, size)}}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	raw := p.Graph.Initializer[0].RawData
	if len(raw) != size {
		t.Fatalf("%d bytes of %d", len(raw), size)
	}
	for i := range data {
		data[i] = 7
	}
	if raw[0] != 7 || raw[size-1] != 7 {
		t.Error("the weights are a copy")
	}
}

// TestReadFile checks that files are read to the last byte. Those of at least minHuge bytes are
// read into memory of huge pages.
func TestReadFile(t *testing.T) {
	t.Parallel()
	content := make([]byte, minHuge+5000)
	for i := range content {
		content[i] = byte(i % 251)
	}
	for _, size := range []int{1, minHuge - 1, minHuge, len(content)} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(path); err != nil || !bytes.Equal(got, content[:size]) {
			t.Errorf("a file of %d bytes: readFile returns other bytes, %d in number; error %v", size, len(got), err)
		}
	}
}
