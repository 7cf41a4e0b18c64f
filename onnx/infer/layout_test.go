package infer

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A layout lists the axes of a tensor, each with a size and a letter for its meaning; nil: unknown
// rank. Layouts are compared as tensor.Axes, one letter for each axis: N batch, C channels, H and W
// space, T tokens, ? unknown. Batches here have 997 samples, the size that is assumed for a free
// batch axis.

// The window partition of a Swin transformer, n x 16 x 16 x 24 into windows of 4 x 4, and back.
// Axes are exchanged as by Transpose.
func TestReshapeToWindowsAndBack(t *testing.T) {
	t.Parallel()
	x := layout{newAxis('N', 997), newAxis('H', 16), newAxis('W', 16), newAxis('C', 24)}
	grid := x.reshape([]int{997, 4, 4, 4, 4, 24})
	if got := grid.axes(); got != "NHHWWC" {
		t.Fatalf("the grid is %s, want %s", got, "NHHWWC")
	}
	grid[2], grid[3] = grid[3], grid[2]
	tokens := grid.reshape([]int{997 * 16, 16, 24})
	if got := tokens.axes(); got != "?TC" {
		t.Fatalf("windows of tokens are %s, want %s", got, "?TC")
	}
	back := tokens.reshape([]int{997, 4, 4, 4, 4, 24})
	back[2], back[3] = back[3], back[2]
	if got := back.reshape([]int{997, 16, 16, 24}).axes(); got != "NHWC" {
		t.Fatalf("joined again, the image is %s, want %s", got, "NHWC")
	}
}

func TestReshape(t *testing.T) {
	t.Parallel()
	image := layout{newAxis('N', 997), newAxis('C', 8), newAxis('H', 4), newAxis('W', 6)}
	batchOfOne := layout{newAxis('N', 1), newAxis('C', 8), newAxis('H', 4), newAxis('W', 6)}
	for _, c := range []struct {
		name  string
		from  layout
		sizes []int
		want  tensor.Axes
	}{
		{"pixels to tokens", image, []int{997, 8, 24}, "NCT"},
		{"flattened", image, []int{997, 192}, "NC"},
		{"grouped channels", image, []int{997, 2, 4, 4, 6}, "NCCHW"},
		{"batch, channels and rows joined", image, []int{997 * 8 * 4, 6}, "?W"},
		{"batch of one kept", batchOfOne, []int{1, 8, 24}, "NCT"},
		{"batch of one dropped and restored", batchOfOne.reshape([]int{8, 24}), []int{1, 8, 24}, "NCT"},
		{"channels split unevenly", image, []int{997, 6, 32}, "N??"},
		{"another number of elements", image, []int{997, 8, 25}, "NC?"},
		{"axes of size 1 inserted", image, []int{997, 1, 8, 1, 24}, "N?C?T"},
		{"1 x 1 feature map to vector", layout{newAxis('N', 997), newAxis('C', 8), newAxis('H', 1), newAxis('W', 1)}, []int{997, 8}, "NC"},
		{"vector to 1 x 1 feature map", layout{newAxis('N', 997), newAxis('C', 8)}, []int{997, 8, 1, 1}, "NCHW"},
	} {
		if got := c.from.reshape(c.sizes).axes(); got != c.want {
			t.Errorf("%s: %v to %v is %s, want %s", c.name, c.from.axes(), c.sizes, got, c.want)
		}
	}
}

// Repeating a tensor of unknown rank gives one of unknown rank, not a scalar.
func TestTileOfUnknownRank(t *testing.T) {
	t.Parallel()
	op := &operation{node: &pb.NodeProto{Input: []string{"x", "repeats"}}, args: []fact{{}, {value: vector([]int{2, 3})}}}
	if got := op.tile(nil); got != nil {
		t.Errorf("the layout is %v, want an unknown one", got)
	}
}

// Axes that are split have their letters again when their parts are joined. Other joins of
// neighbouring parts have the sizes that are asked for.
func TestReshapeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x layout
		var fine []int
		for _, letter := range []byte("NCHWT")[:rapid.IntRange(1, 5).Draw(t, "rank")] {
			size := 1
			for range rapid.IntRange(1, 3).Draw(t, "factors") {
				f := rapid.IntRange(2, 5).Draw(t, "factor")
				fine = append(fine, f)
				size *= f
			}
			x = append(x, newAxis(letter, size))
		}
		coarse := []int{1}
		for _, f := range fine {
			if rapid.Bool().Draw(t, "join") {
				coarse[len(coarse)-1] *= f
			} else {
				coarse = append(coarse, f)
			}
		}
		split := x.reshape(fine)
		back := split.reshape(coarse)
		if !slices.Equal(back.sizes(), coarse) {
			t.Fatalf("sizes %v, want %v", back.sizes(), coarse)
		}
		if again := split.reshape(x.sizes()); again.axes() != x.axes() {
			t.Fatalf("%s comes back as %s", x.axes(), again.axes())
		}
	})
}

func TestBroadcast(t *testing.T) {
	t.Parallel()
	image := layout{newAxis('N', 997), newAxis('C', 8), newAxis('H', 4), newAxis('W', 4)}
	for _, c := range []struct {
		name string
		a, b layout
		want tensor.Axes
	}{
		{"bias", image, unlabelled(8, 1, 1), "NCHW"},
		{"scalar first", layout{}, image, "NCHW"},
		{"channel gate", unlabelled(997, 8, 1, 1), image, "NCHW"},
		{"first operand without letters", unlabelled(997, 8, 4, 4), image, "NCHW"},
		{"operand with more distinct letters", layout{newAxis('N', 997), newAxis('C', 4), newAxis('C', 4)}, layout{newAxis('N', 997), newAxis('T', 4), newAxis('C', 4)}, "NTC"},
		{"outer sum", layout{newAxis('N', 997), newAxis('T', 4), newAxis('T', 1)}, layout{newAxis('N', 997), newAxis('T', 1), newAxis('T', 4)}, "NTT"},
	} {
		if got := broadcast(c.a, c.b).axes(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if broadcast(image, nil) != nil {
		t.Error("an operand of unknown rank gives a known one")
	}
}

// Inferred shapes equal those of the shape inference of the onnx Python package, which
// testdata/shapes.py stores: for each test network, a map from tensor to shape. Free sizes are
// assumed to be typical ones, such as a batch of 997. The shapes of all layers must be known.
func TestShapesAgreeWithONNX(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/shapes.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string][]int
	if err := json.NewDecoder(unzipped).Decode(&want); err != nil {
		t.Fatal(err)
	}
	for net, tensors := range want {
		m, err := onnx.Read(testdata.Path(t, "nets", net, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		facts := infer(m, nil, withTypicalSizes).facts
		for name, shape := range tensors {
			if got := facts[name].layout.sizes(); !slices.Equal(got, shape) {
				t.Errorf("%s: %s is %v, want %v", net, name, got, shape)
			}
		}
		for _, l := range m.Layers() {
			if sizes := facts[l.Name].layout.sizes(); sizes == nil || slices.Contains(sizes, -1) {
				t.Errorf("%s: the shape of %s (%s) is not known: %v", net, l.Name, l.Op, sizes)
			}
		}
	}
}
