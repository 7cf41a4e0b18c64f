package model_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A form is the type, layout, batch size and number of channels of a model's image input.
type form struct {
	typ      onnx.Type
	layout   string // NCHW or NHWC
	batch    int    // -1: any
	channels int
}

// weightOf returns the weight of a pixel in the networks of these tests.
func weightOf(c, y, x int) float32 { return float32(c+1)*0.5 + float32(y)*0.25 - float32(x)*0.125 }

const side = 4 // height and width of the images of these tests

// network returns a function that builds a network whose input x has the form f. Its layer
// "doubled" is 2 x. Its output "scores" has three values: the sum of 2 x over all pixels, the sum
// of x weighted by weightOf, and 0. Images of the same pixels give the same results in every form.
func network(f form) func(b *onnx.Builder) {
	return func(b *onnx.Builder) {
		shape := []int{f.batch, f.channels, side, side}
		if f.layout == "NHWC" {
			shape = []int{f.batch, side, side, f.channels}
		}
		x := b.Input("x", f.typ, shape...)
		if f.typ != onnx.Float {
			x = b.Cast(x, onnx.Float)
		}
		if f.layout == "NHWC" {
			x = b.Transpose(x, 0, 3, 1, 2)
		}
		doubled := b.Mul(x, b.Scalar(2))
		b.Output("doubled", doubled)
		n := f.channels * side * side
		w := tensor.New(n, 3)
		for c := range f.channels {
			for i := range side * side {
				w.Data[(c*side*side+i)*3] = 1
				w.Data[(c*side*side+i)*3+1] = weightOf(c, i/side, i%side) / 2
			}
		}
		b.Output("scores", b.MatMul(b.Reshape(doubled, -1, n), b.Const("w", w)))
	}
}

// expected returns the layer and the scores of the network for a normalised image.
func expected(p tensor.Tensor) (doubled []float32, scores [3]float64) {
	for j, v := range p.Data {
		doubled = append(doubled, 2*v)
		scores[0] += 2 * float64(v)
		scores[1] += float64(weightOf(j/(side*side), j/side%side, j%side)) * float64(v)
	}
	return doubled, scores
}

// drawImage returns an image of random 8-bit values, divided by 255.
func drawImage(t *rapid.T, channels int) tensor.Tensor {
	p := tensor.New(channels, side, side)
	for i := range p.Data {
		p.Data[i] = float32(rapid.IntRange(0, 255).Draw(t, "pixel")) / 255
	}
	return p
}

// TestForms checks that models of every form (type, layout, channels, fixed or dynamic batch size)
// give the results of the same network, for batches of any size. The images are normalised, except
// that a model of type uint8 gets the values 0 to 255. The frame is the size and number of channels
// of the images that a model takes.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, typ := range []onnx.Type{onnx.Float, onnx.Double, onnx.Uint8, onnx.Float16, onnx.BFloat16} {
		for _, layout := range []string{"NCHW", "NHWC"} {
			for _, batch := range []int{-1, 1, 3} {
				for _, channels := range []int{1, 3} {
					f := form{typ, layout, batch, channels}
					path := save(t, network(f))
					o := model.Options{Layers: []string{"doubled"}, Output: "scores"}
					if typ != onnx.Uint8 {
						o.Preprocess = model.Preprocess{Mean: []float32{0.25}, Std: []float32{0.5}}
					}
					m, err := modeltest.Open(t, path, o)
					if err != nil {
						t.Fatalf("%v: %v", f, err)
					}
					if m.Frame().Channels != channels || m.Frame().Height != side || m.Classes() != 3 {
						t.Fatalf("%v: frame %+v, %d classes", f, m.Frame(), m.Classes())
					}
					if l := m.Layers(); len(l) != 1 || l[0].Axes != "NCHW" || !slices.Equal(l[0].Shape, []int{channels, side, side}) {
						t.Fatalf("%v: layers %+v", f, l)
					}
					s, err := m.NewSession(m.Layers(), true)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					buf, err := s.NewBuffers(5)
					if err != nil {
						t.Fatal(err)
					}
					rapid.Check(t, func(t *rapid.T) {
						n := rapid.IntRange(0, 5).Draw(t, "n")
						var images []tensor.Tensor
						for range n {
							images = append(images, drawImage(t, channels))
						}
						if err := s.Run(context.Background(), images, buf); err != nil {
							t.Fatal(err)
						}
						checkBatch(t, buf, images, func(v float32) float32 {
							if typ == onnx.Uint8 {
								return v * 255
							}
							return (v - 0.25) / 0.5
						})
					})
				}
			}
		}
	}
}

// checkBatch compares the layer and the scores in buf with those that expected returns for the
// normalised images. buf has logarithms of probabilities, so it compares differences of scores.
func checkBatch(t *rapid.T, buf *model.Buffers, images []tensor.Tensor, normalise func(float32) float32) {
	logProbs, err := buf.LogProbs(nil)
	if err != nil {
		t.Fatal(err)
	}
	z := buf.Layer(0)
	if z.Shape[0] != len(images) || logProbs.Shape[0] != len(images) {
		t.Fatalf("%d images give a layer of shape %v and scores of shape %v", len(images), z.Shape, logProbs.Shape)
	}
	for i, p := range images {
		p = p.Clone()
		for j, v := range p.Data {
			p.Data[j] = normalise(v)
		}
		doubled, scores := expected(p)
		for j, v := range doubled {
			if math.Abs(float64(v-z.At(i).Data[j])) > 1e-3 {
				t.Fatalf("image %d, value %d is %v, want %v", i, j, z.At(i).Data[j], v)
			}
		}
		for k, v := range logProbs.At(i).Data[:2] {
			if want := scores[k] - scores[2]; math.Abs(float64(v-logProbs.At(i).Data[2])-want) > 1e-4*(1+math.Abs(want)) {
				t.Fatalf("image %d: score %d is %v above the last, want %v", i, k, v-logProbs.At(i).Data[2], want)
			}
		}
	}
}

// TestConcurrentRuns uses one session from several goroutines, each with buffers of its own.
func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	path := save(t, network(form{onnx.Float, "NCHW", -1, 3}))
	// openLayer opens the model with a session that returns the layer.
	_, s := openLayer(t, orttest.Load(t), path, "doubled")
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			buf, err := s.NewBuffers(3)
			if err != nil {
				t.Error(err)
				return
			}
			p := tensor.New(3, side, side)
			for i := range p.Data {
				p.Data[i] = float32(g + i)
			}
			want, _ := expected(p)
			for k := range 50 {
				images := slices.Repeat([]tensor.Tensor{p}, 1+k%3)
				if err := s.Run(context.Background(), images, buf); err != nil || !slices.Equal(buf.Layer(0).Data, slices.Repeat(want, len(images))) {
					t.Errorf("goroutine %d: the layer is %v, want %v for each image; error %v", g, buf.Layer(0), want, err)
					return
				}
			}
		})
	}
	wait.Wait()
}
