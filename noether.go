// Package noether measures what each layer of a neural network keeps, moves or throws away when its
// input is transformed: the door for Go programs to what the command of the same name does.
//
// Open loads a model, Measure and Compare return scores of layers without a study file, and Load
// and Run carry out a study file:
//
//	m, err := noether.Open("resnet18.onnx", noether.ModelOptions{Layers: []string{"penultimate"}, Preprocess: "imagenet"})
//	photos, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: "photos"})
//	quarter := transform.Rotate{Angle: transform.Fixed(90)}
//	layers, err := noether.Measure(ctx, m, photos, quarter, distance.New(distance.Settings{}))
//
// Measures are in the packages below measure, transformations in package transform, data in package
// dataset. A measure of your own is a function of two vectors (package measure/paired) or any
// measure.Measure. ONNX Runtime and a fast BLAS are found as docs/reference/command.md says of
// noether doctor, and loaded at the first call of Open or Run.
package noether

import (
	"context"
	"fmt"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Model is a network that is ready to be measured. It may be used by several goroutines.
type Model struct{ net *model.Model }

// ModelOptions say what Open cannot read from a model's file. The zero value chooses no layers.
type ModelOptions struct {
	// Layers are names of tensors, glob patterns, "op:Relu", "penultimate", "output" or "all".
	Layers []string
	// Preprocess is "imagenet", "cifar10", "clip" or "none", the path of a preprocessor_config.json,
	// or keys as in a study file, in braces. If it is "", preprocessor_config.json beside the model
	// or the model's metadata are read; without either, images enter with values in [0, 1].
	Preprocess string
	Scores     string // content of the output: "logits", "probabilities" or "none"; "": inferred
	Device     string // "cpu", "cuda", "webgpu" ...; "": cpu
	Threads    int    // of ONNX Runtime; 0: one for each core
}

// Open reads an ONNX file and finds its input, its layers and what its output holds. Errors are one
// line that names the file.
func Open(path string, o ModelOptions) (*Model, error) {
	rt, _, err := library()
	if err != nil {
		return nil, err
	}
	preprocess, _, err := open.PreprocessFor(o.Preprocess, path)
	if err != nil {
		return nil, err
	}
	net, err := rt.OpenNetwork(path, ort.NetworkOptions{Device: o.Device, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	m, err := model.Open(context.Background(), net, model.Options{Layers: o.Layers, Preprocess: preprocess, Scores: o.Scores})
	if err != nil {
		return nil, err
	}
	return &Model{m}, nil
}

// Layers returns the chosen layers in the order of computation.
func (m *Model) Layers() []tensor.Layer { return m.net.Layers() }

// Classes returns the number of classes that the model scores, or 0.
func (m *Model) Classes() int { return m.net.Classes() }

// SHA256 returns the hash of the model's files in hexadecimal.
func (m *Model) SHA256() string { return m.net.SHA256() }

// LayerScores are the scores of a measure at one layer, or of the predictions, whose Layer is zero.
type LayerScores = study.LayerScores

// Measure returns the scores of measures at every layer of m on the samples of a source and on
// their transforms by t, drawn once for all samples; a nil t means clean samples only. Layers that
// a measure does not apply to are left out. The seed is 1. Nothing is saved: for long work, Run a
// study.
func Measure(ctx context.Context, m *Model, samples dataset.Source, t transform.Transform, measures ...measure.Measure) ([]LayerScores, error) {
	return study.Measure(ctx, m.net, samples, t, measures...)
}

// PairScores are the scores of a comparison of two layers.
type PairScores = study.PairScores

// Compare returns the scores of comparisons of every layer of a with every layer of b on the same
// samples, each read at the size of the model's input. Pairs that a comparison does not apply to
// are left out. The seed is 1.
func Compare(ctx context.Context, a, b *Model, samples dataset.Source, comparisons ...measure.Comparison) ([]PairScores, error) {
	return study.Compare(ctx, a.net, b.net, samples, comparisons...)
}

// A Study is what a study file says. docs/reference/study-file.md lists its keys.
type Study = study.Study

// Load reads a study file. vars are looked up before the environment for ${NAME} in the file.
// Errors have the file's name and line.
func Load(path string, vars map[string]string) (*Study, error) { return study.Load(path, vars) }

// RunOptions are settings of a run that scores do not depend on.
type RunOptions struct {
	Device   string                  // "cpu", "cuda", "webgpu" ...; "": cpu
	Threads  int                     // of ONNX Runtime and the BLAS; 0: one for each core
	Replace  bool                    // remove the run of another study from the folder, else an error
	Warn     func(text string)       // gets warnings that belong to no score; may be nil
	Progress func(done, total int64) // gets the samples of forward passes after each batch; may be nil
}

// Run fills a run folder with the scores of a study and returns them as rows of scores.csv. It
// resumes an earlier run of the same study in the folder; when ctx ends it stops, and what is
// finished stays. If some cells fail, it returns the rows of the others with the error.
func Run(ctx context.Context, s *Study, folder string, o RunOptions) ([]scores.Row, error) {
	rt, blas, err := library()
	if err != nil {
		return nil, err
	}
	options := study.Options{Runtime: rt, BLAS: blas, Device: o.Device, Threads: o.Threads, Replace: o.Replace, Warn: o.Warn, Memory: machine.MemoryLimit(), Free: machine.FreeMemory()}
	if o.Progress != nil {
		options.Progress = func(p study.Progress) { o.Progress(p.Done, p.Total) }
	}
	result, err := study.Run(ctx, s, folder, options)
	if result == nil {
		return nil, err
	}
	return result.Rows, err
}

var libraries struct {
	once sync.Once
	rt   *ort.Runtime
	blas blas.Backend
	err  error
}

// library loads ONNX Runtime and a fast BLAS, once for the process.
func library() (*ort.Runtime, *blas.Backend, error) {
	l := &libraries
	l.once.Do(func() {
		path, _, err := ort.Find("")
		if err != nil {
			l.err = fmt.Errorf("noether: %w", err)
			return
		}
		l.rt, l.err = ort.Load(path)
		l.blas = blas.Load()
	})
	return l.rt, &l.blas, l.err
}
