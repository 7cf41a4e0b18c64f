package model_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// TestPairSessions checks the layers, the class scores and the reductions of a pair of sessions
// against two runs of an ordinary session, on the CPU and on a software driver that emulates a GPU.
// The reduction of an image is the sum of |clean - transformed|, for its own clean activations and
// for those of its partner.
func TestPairSessions(t *testing.T) {
	for _, device := range []string{"cpu", "webgpu"} {
		t.Run(device, func(t *testing.T) {
			if device == "webgpu" {
				gputest.UseDriver(t)
			}
			path := testmodel.Write(t, t.TempDir(), "net", testmodel.Options{})
			m, err := modeltest.Open(t, path, model.Options{Layers: []string{"conv", "op:Relu"}}, ort.NetworkOptions{Device: device})
			if err != nil {
				t.Fatal(err)
			}
			layers := m.Layers()
			difference := engine.Reduction{Layer: layers[0], Values: &measure.Reduction{Width: 2,
				Sums: []measure.Sum{{Of: measure.OfDifference, Absolute: true}, {Of: measure.OfShuffledDifference, Absolute: true}}}}
			clean, transformed, err := m.NewPairSessions(layers[1:], []engine.Reduction{difference}, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer clean.Close()
			defer transformed.Close()
			plain, err := m.NewSession(layers, true)
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			comparePairs(t, clean, transformed, plain)
		})
	}
}

// comparePairs runs batches of several sizes, the last two with wrong numbers of partners and
// images.
func comparePairs(t *testing.T, clean, transformed, plain *model.Session) {
	t.Helper()
	const batch = 5
	var buffers [4]*model.Buffers // of the pair, and of the ordinary session for clean and transformed images
	for i, s := range []*model.Session{clean, transformed, plain, plain} {
		var err error
		if buffers[i], err = s.NewBuffers(batch); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 5))
	for _, n := range []int{batch, 3, batch, 1} {
		x, y := randomImages(r, n), randomImages(r, n)
		partners := r.Perm(n)
		if err := clean.Run(t.Context(), x, buffers[0]); err != nil {
			t.Fatal(err)
		}
		for range 2 { // two views of the same clean images
			if err := transformed.RunTransformed(t.Context(), y, partners, buffers[0], buffers[1]); err != nil {
				t.Fatal(err)
			}
		}
		for i, images := range [][]tensor.Tensor{x, y} {
			if err := plain.Run(t.Context(), images, buffers[2+i]); err != nil {
				t.Fatal(err)
			}
			near(t, "ReLU", buffers[i].Layer(0).Data, buffers[2+i].Layer(1).Data)
			a, err := buffers[i].LogProbs(nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := buffers[2+i].LogProbs(nil)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "log-probabilities", a.Data, b.Data)
		}
		z, moved := buffers[2].Layer(0), buffers[3].Layer(0)
		var want []float32
		for i, p := range partners {
			want = append(want, absoluteDistance(moved.At(i), z.At(i)), absoluteDistance(moved.At(i), z.At(p)))
		}
		near(t, "reduction", buffers[1].Reduction(0).Data, want)
	}
	for _, c := range []struct {
		images   int
		partners []int
		want     string
	}{{1, []int{0, 0}, "1 transformed images with 2 partners"}, {2, []int{1, 0}, "the clean batch of 1 images"}} {
		err := transformed.RunTransformed(t.Context(), randomImages(r, c.images), c.partners, buffers[0], buffers[1])
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if err := transformed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := clean.Run(t.Context(), randomImages(r, 1), buffers[0]); err != nil {
		t.Errorf("the session for clean images after the other one is closed: %v", err)
	}
}

func randomImages(r *rand.Rand, n int) (images []tensor.Tensor) {
	for range n {
		image := tensor.New(3, 16, 16)
		for i := range image.Data {
			image.Data[i] = r.Float32()
		}
		images = append(images, image)
	}
	return images
}

func absoluteDistance(a, b tensor.Tensor) float32 {
	var sum float64
	for i, v := range a.Data {
		sum += math.Abs(float64(v - b.Data[i]))
	}
	return float32(sum)
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-4*max(1, math.Abs(float64(want[i])))) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestCanPair checks that a model with a fixed number of images is refused.
func TestCanPair(t *testing.T) {
	dir := t.TempDir()
	for batch, want := range map[int]bool{0: true, 4: false} {
		m, err := modeltest.Open(t, testmodel.Write(t, dir, "net", testmodel.Options{Batch: batch}), model.Options{Layers: []string{"conv"}})
		if err != nil {
			t.Fatal(err)
		}
		if m.CanPair() != want {
			t.Errorf("a batch of %d: %v, want %v", batch, m.CanPair(), want)
		}
	}
}
