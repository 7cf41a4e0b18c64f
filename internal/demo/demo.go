// Package demo builds two small classifiers of shapes in which invariance is there, or is not, by construction.
//
// Both look at an image with a bank of Gabor filters: waves of several lengths in twelve directions, 15 degrees
// apart. The length of a filter's complex response, the energy, says how strong an edge of that direction and width
// is, wherever in the wave it lies. Both then summarise each map of energies over the image, and read the class off by
// a linear function. They differ in one node:
//
//	oriented   x -> value -> gabor -> energy              -> pooled -> logits
//	invariant  x -> value -> gabor -> energy -> strongest -> pooled -> logits
//
// The second keeps only the strongest of the twelve directions at each place. Turning the image by 15 degrees moves
// the energies and permutes the directions; the maximum forgets the permutation, and the summary over the whole
// image forgets the move. So its logits stay, while those of the first do not. (Half a turn is the exception: the
// energy of a direction is that of the opposite one, so under 180 degrees both stay.)
//
// Nothing is trained by steps: the linear function is Fisher's discriminant, solved in closed form from features of
// 2,000 figures that are all nearly upright. Upright is all that either has seen.
package demo

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// Files are the paths of what Build has written, all in one folder.
type Files struct {
	Oriented  string // the classifier that knows directions
	Invariant string // the classifier that forgets them
	Study     string // the study that measures both
}

//go:embed demo.yaml
var study []byte

// The side of an image, and how many figures the classifiers are fitted to. The seed differs from the study's.
const (
	side      = 32
	figures   = 2000
	trainSeed = 1
)

// Build writes the two classifiers, as ONNX models, and the study into dir, which it makes if need be.
func Build(ctx context.Context, rt *ort.Runtime, dir string) (Files, error) {
	f := Files{
		Oriented:  filepath.Join(dir, "oriented.onnx"),
		Invariant: filepath.Join(dir, "invariant.onnx"),
		Study:     filepath.Join(dir, "demo.yaml"),
	}
	if err := f.build(ctx, rt, dir); err != nil {
		return Files{}, fmt.Errorf("building the demo: %w", err)
	}
	return f, nil
}

func (f Files) build(ctx context.Context, rt *ort.Runtime, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	train, err := upright(ctx, figures, trainSeed)
	if err != nil {
		return err
	}
	if err := write(ctx, rt, f.Oriented, oriented, train); err != nil {
		return err
	}
	if err := write(ctx, rt, f.Invariant, invariant, train); err != nil {
		return err
	}
	return os.WriteFile(f.Study, study, 0o644)
}

// write fits a classifier and saves it.
func write(ctx context.Context, rt *ort.Runtime, path string, look func(*onnx.Builder) onnx.Value, train sample) error {
	model, err := fit(ctx, rt, look, train)
	if err != nil {
		return err
	}
	data, err := model.Bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// A sample is some images with their labels.
type sample struct {
	images  tensor.Tensor // n x 3 x side x side
	labels  []int
	classes int
}

// upright draws n figures that are turned by 15 degrees at most: those of demo.yaml, for another seed.
func upright(ctx context.Context, n int, seed uint64) (sample, error) {
	source, err := dataset.OpenShapes(dataset.ShapesOptions{N: n, Size: side, Seed: seed, Rotation: []float64{-15, 15}})
	if err != nil {
		return sample{}, err
	}
	s := sample{tensor.New(n, 3, side, side), make([]int, n), len(source.Classes())}
	for i := range n {
		one, err := source.At(ctx, i, dataset.Frame{})
		if err != nil {
			return sample{}, err
		}
		copy(s.images.At(i).Data, one.Input.Data)
		s.labels[i] = one.Label
	}
	return s, nil
}

// fit returns the classifier that reads the classes off what look sees.
func fit(ctx context.Context, rt *ort.Runtime, look func(*onnx.Builder) onnx.Value, train sample) (*onnx.Model, error) {
	b := onnx.NewBuilder(opset)
	pooled := look(b)
	features, err := b.Model()
	if err != nil {
		return nil, err
	}
	seen, err := run(ctx, rt, features, string(pooled), train.images)
	if err != nil {
		return nil, err
	}
	weights, bias, err := discriminant(seen, train.labels, train.classes)
	if err != nil {
		return nil, err
	}
	b.Output("logits", b.Gemm(pooled, b.Const("readout.weight", weights), b.Const("readout.bias", bias), nil))
	whole, err := b.Model()
	if err != nil {
		return nil, err
	}
	classifier, err := rewrite.WithOutputs(whole, []string{"logits"})
	if err != nil {
		return nil, err
	}
	declareShape(classifier, train.classes)
	return classifier, nil
}

// declareShape says that the output is batch x classes. The runtime finds out by itself; ONNX's own checker, and
// tools that rest on it, want it to be written.
func declareShape(m *onnx.Model, classes int) {
	m.Proto().Graph.Output[0].Type.GetTensorType().Shape = &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dimension{
		{Value: &pb.TensorShapeProto_Dimension_DimParam{DimParam: "batch"}},
		{Value: &pb.TensorShapeProto_Dimension_DimValue{DimValue: int64(classes)}},
	}}
}

// run returns one output of a model on all images, n x d.
func run(ctx context.Context, rt *ort.Runtime, m *onnx.Model, output string, images tensor.Tensor) (out tensor.Tensor, err error) {
	const batch = 250
	m, err = rewrite.WithOutputs(m, []string{output})
	if err != nil {
		return out, err
	}
	session, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		return out, err
	}
	defer session.Close()
	n := images.Shape[0]
	for lo := 0; lo < n; lo += batch {
		part := images.Slice(lo, min(n, lo+batch))
		rows, err := runBatch(ctx, rt, session, part)
		if err != nil {
			return out, err
		}
		if lo == 0 {
			out = tensor.New(n, rows.Shape[1])
		}
		copy(out.Slice(lo, lo+rows.Shape[0]).Data, rows.Data)
	}
	return out, nil
}

func runBatch(ctx context.Context, rt *ort.Runtime, session *ort.Session, images tensor.Tensor) (tensor.Tensor, error) {
	x, err := ort.Wrap(rt, images.Data, images.Shape...)
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer x.Close()
	y := []*ort.Value{nil}
	if err := session.Run(ctx, []*ort.Value{x}, y); err != nil {
		return tensor.Tensor{}, err
	}
	defer y[0].Close()
	return y[0].Tensor().Clone(), nil
}
