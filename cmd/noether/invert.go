package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/tensor"
)

type invertFlags struct {
	data, out, layer, preprocess, start      string
	limit, size                              int
	options                                  invert.Options
	beta                                     float64
	seed                                     uint64
	against, againstLayer, againstPreprocess string
	controversial, normalised, json          bool
}

func invertCommand(engine *engineFlags) *cobra.Command {
	var f invertFlags
	c := &cobra.Command{
		Use:   "invert MODEL",
		Short: "Find images that a model maps to the same representation",
		Long: `Finds for each image x an image x' that a layer of the model maps to the same representation. The search
starts from noise, and image content that the layer ignores stays noise (Nanda et al. 2022, equation 4).
It writes into a folder: contact.png, each x beside its x'; contact.json, its caption; x.npy and
inverted.npy, n x c x h x w; distances.npy; summary.json.

With --against, the search also maximises the distance in a second model; --controversial starts near x.
A stopped search resumes when the command is run again.`,
		Example: "  noether invert resnet18.onnx --data photos/ --preprocess imagenet -o inverted\n" +
			"  noether invert a.onnx --data test_batch.bin --against b.onnx --controversial -o stimuli",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			err := f.checkUnused(c.Flags().Changed)
			if err == nil {
				err = f.check()
			}
			if err != nil {
				return usagef(c, "%v", err)
			}
			return f.run(c.Context(), engine, args[0])
		},
	}
	p := c.Flags()
	p.StringVar(&f.data, "data", "", "images: a folder, CIFAR (.bin), IDX, npy or npz")
	p.StringVarP(&f.out, "out", "o", "", "output folder")
	p.StringVar(&f.layer, "layer", "penultimate", "layer whose representation is matched; see noether inspect")
	p.StringVar(&f.preprocess, "preprocess", "", "imagenet, cifar10, clip, none, a preprocessor_config.json, or a mapping such as '{resize: 256, crop: 224}' (default: preprocessor_config.json beside the model, else the model's metadata)")
	p.IntVar(&f.size, "size", 0, "side of the images, for a model of free size")
	p.IntVar(&f.limit, "limit", 16, "number of images, selected at random")
	p.Uint64Var(&f.seed, "seed", 1, "seed of all random numbers")
	p.StringVar(&f.start, "start", string(invert.Noise), "noise (integers 0 to 255), normal (N(0, 1)), white, black, one (the same noise for all), shuffled (the images in another order), near (x with little noise)")
	p.StringVar((*string)(&f.options.Optimiser), "optimiser", string(invert.Adam), "adam, or paper: steps of fixed length along the gradient")
	p.IntVar(&f.options.Steps, "steps", 0, "number of steps (default: 150; 1000 with --optimiser paper)")
	p.Float64Var(&f.options.StepSize, "step-size", 0, "step size (default: 0.01 per pixel; a length of 0.5 with --optimiser paper)")
	p.StringVar((*string)(&f.options.Ball.Norm), "norm", "", "l2 or linf: keep x' in a ball around x")
	p.Float64Var(&f.options.Ball.Radius, "radius", 0, "radius of the ball; images have values from 0 to 1")
	p.StringVar(&f.against, "against", "", "second model, in which the distance is maximised")
	p.StringVar(&f.againstLayer, "against-layer", "penultimate", "layer of the second model")
	p.StringVar(&f.againstPreprocess, "against-preprocess", "", "preprocessing of the second model (default: --preprocess, else found as for the first model)")
	p.BoolVar(&f.controversial, "controversial", false, "start from x with little noise")
	p.BoolVar(&f.normalised, "normalised", false, "with --against: relative distances, with the second weighted by --beta")
	p.Float64Var(&f.beta, "beta", 0.1, "weight of the second distance, with --normalised")
	p.BoolVar(&f.json, "json", false, "print the summary as JSON")
	return c
}

func (f *invertFlags) check() error {
	if f.controversial {
		if f.against == "" {
			return errors.New("--controversial needs a second model: --against")
		}
		f.start = string(invert.Near)
	}
	_, err := f.options.WithDefaults()
	switch {
	case f.data == "":
		return errors.New("--data is missing")
	case f.out == "":
		return errors.New("--out is missing")
	case err != nil:
		return err
	case f.size < 0:
		return fmt.Errorf("--size is %d; it must be at least 0", f.size)
	case !slices.Contains(invert.StartKinds(), invert.StartKind(f.start)):
		return fmt.Errorf("--start %q: it must be one of %v", f.start, invert.StartKinds())
	case f.limit < 1:
		return fmt.Errorf("--limit is %d; it must be at least 1", f.limit)
	case f.normalised && f.against == "":
		return errors.New("--normalised needs a second model: --against")
	case f.normalised && !(f.beta > 0 && f.beta < 1e6):
		return fmt.Errorf("--beta is %v; it must be above 0 and below 1e6", f.beta)
	}
	return nil
}

// checkUnused returns an error for a flag without effect, for --steps or --step-size of 0, and for
// a --start that contradicts --controversial.
func (f *invertFlags) checkUnused(given func(flag string) bool) error {
	for _, pair := range [][2]string{
		{"against-layer", "against"}, {"against-preprocess", "against"}, {"beta", "normalised"}, {"radius", "norm"},
	} {
		if given(pair[0]) && !given(pair[1]) {
			return fmt.Errorf("--%s has no effect without --%s", pair[0], pair[1])
		}
	}
	switch {
	case given("steps") && f.options.Steps == 0:
		return errors.New("--steps is 0; it must be at least 1")
	case given("step-size") && f.options.StepSize == 0:
		return errors.New("--step-size is 0; it must be above 0")
	}
	if f.controversial && given("start") && f.start != string(invert.Near) {
		return errors.New("--controversial starts near x: leave out --start")
	}
	return nil
}

func (f *invertFlags) run(ctx context.Context, engine *engineFlags, path string) error {
	o, err := engine.open()
	if err != nil {
		return err
	}
	m, layer, err := f.open(ctx, o, path, f.layer, f.preprocess)
	if err != nil {
		return err
	}
	objective := invert.Match(m, layer)
	if f.against != "" {
		pre := cmp.Or(f.againstPreprocess, f.preprocess)
		other, otherLayer, err := f.open(ctx, o, f.against, f.againstLayer, pre)
		if err != nil {
			return err
		}
		objective = invert.Contrast(m, layer, other, otherLayer)
		if f.normalised {
			objective = invert.NormalisedContrast(m, layer, other, otherLayer, f.beta)
		}
	}
	samples, err := f.read(ctx, m.Frame())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return err
	}
	x := stack(samples)
	found, err := f.search(ctx, objective, samples, x)
	if err != nil {
		return err
	}
	summary, err := f.summarise(ctx, path, objective, samples, x, found)
	if err != nil {
		return err
	}
	if err := f.write(summary, x, found.Images); err != nil {
		return err
	}
	return show(f.json, summary, func() error { return summary.print(stdout, f.out) })
}

// open opens a model, and returns the one layer that the name matches. address is a path or URL.
func (f *invertFlags) open(ctx context.Context, o study.Options, address, layer, preprocess string) (*model.Model, tensor.Layer, error) {
	path, err := open.ModelFile(ctx, address, note)
	if err != nil {
		return nil, tensor.Layer{}, err
	}
	pre, file, err := open.PreprocessFor(preprocess, path)
	if err != nil {
		return nil, tensor.Layer{}, err
	}
	if preprocess == "" && file == "" {
		note(fmt.Sprintf("no preprocessing is known for %s: it gets images with values from 0 to 1; set --preprocess", path))
	}
	net, err := o.Runtime.OpenNetwork(path, ort.NetworkOptions{Threads: o.Threads, Device: o.Device})
	if err != nil {
		return nil, tensor.Layer{}, err
	}
	m, err := model.Open(ctx, net, model.Options{Layers: []string{layer}, Preprocess: pre, Size: [2]int{f.size, f.size}})
	if err != nil {
		return nil, tensor.Layer{}, err
	}
	if n := len(m.Layers()); n != 1 {
		return nil, tensor.Layer{}, fmt.Errorf("model %s: %q matches %d layers: set one layer, see noether inspect", path, layer, n)
	}
	if shape := m.ImageShape(); f.size > 0 && (shape[1] != f.size || shape[2] != f.size) {
		note(fmt.Sprintf("%s takes images of %d x %d: --size %d has no effect", path, shape[1], shape[2], f.size))
	}
	return m, m.Layers()[0], nil
}

// read reads images from the data, selected at random.
func (f *invertFlags) read(ctx context.Context, frame dataset.Frame) ([]dataset.Sample, error) {
	src, err := open.OpenPath(ctx, f.data)
	if err != nil {
		return nil, err
	}
	defer dataset.Close(src)
	subset, err := dataset.RandomSubset(ctx, src, f.limit, dataset.SplitOptions{Seed: f.seed})
	if err != nil {
		return nil, err
	}
	indices := dataset.Indices(subset.Len())
	var samples []dataset.Sample
	for s, err := range dataset.Read(ctx, subset, indices, frame, dataset.ReadOptions{}) {
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s has no images", f.data)
	}
	for _, s := range samples {
		if !slices.Equal(s.Input.Shape, samples[0].Input.Shape) {
			return nil, fmt.Errorf("%s: images have different sizes, %v and %v: set --preprocess or --size", f.data, samples[0].Input.Shape, s.Input.Shape)
		}
	}
	return samples, nil
}

// stack returns the inputs of samples as one tensor of n x c x h x w.
func stack(samples []dataset.Sample) tensor.Tensor {
	x := tensor.New(append([]int{len(samples)}, samples[0].Input.Shape...)...)
	for i, s := range samples {
		copy(x.At(i).Data, s.Input.Data)
	}
	return x
}

// search runs the inversion of the images x. It resumes from the checkpoint in the output folder.
func (f *invertFlags) search(ctx context.Context, objective invert.Distances, samples []dataset.Sample, x tensor.Tensor) (*invert.Result, error) {
	start, err := invert.Start(invert.StartKind(f.start), x, func(i int) *rand.Rand {
		if i >= 0 { // -1: the draw is for all images together
			i = samples[i].Index
		}
		return seed.Rand(f.seed, "invert: start", f.start, i)
	})
	if err != nil {
		return nil, err
	}
	s, err := invert.New(objective, f.options)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	names := make([]string, len(samples))
	for i, sample := range samples {
		names[i] = sample.Name
	}
	progress, done := showProgress(os.Stderr)
	defer done()
	return s.Run(ctx, invert.Problem{Images: x, Start: start, Names: names, Checkpoint: checkpoint.File(f.checkpoint()),
		Progress: func(p invert.Progress) {
			progress(study.Progress{Done: p.Done, Total: p.Total, Model: fileName(objective[0].Model.Path()),
				Data: fileName(f.data), Note: fmt.Sprintf("distance %.3g", p.Loss)})
		}})
}

func (f *invertFlags) checkpoint() string { return filepath.Join(f.out, "checkpoint.bin") }

// write writes images, arrays and summary into the folder, and removes the checkpoint.
func (f *invertFlags) write(s *inversionSummary, x, found tensor.Tensor) error {
	distances := tensor.New(len(s.Samples))
	for i, sample := range s.Samples {
		distances.Data[i] = float32(sample.Distance)
	}
	files := map[string]func(w io.Writer) error{
		"contact.png":   func(w io.Writer) error { return png.Encode(w, invert.ContactSheet(x, found)) },
		"contact.json":  func(w io.Writer) error { return json.NewEncoder(w).Encode(s.caption()) },
		"x.npy":         func(w io.Writer) error { return dataset.WriteNPY(w, x) },
		"inverted.npy":  func(w io.Writer) error { return dataset.WriteNPY(w, found) },
		"distances.npy": func(w io.Writer) error { return dataset.WriteNPY(w, distances) },
		"summary.json":  func(w io.Writer) error { return writeJSON(w, s) },
	}
	for name, write := range files {
		if err := atomicfile.WriteFunc(filepath.Join(f.out, name), write); err != nil {
			return err
		}
	}
	if err := os.Remove(f.checkpoint()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
