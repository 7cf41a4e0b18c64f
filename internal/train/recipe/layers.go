package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/internal/train/filters"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Layer is the result of one layer of a network that is trained layer by layer.
type Layer struct {
	Units  int `json:"units"`
	Epochs int `json:"epochs"`
	// Start is the reconstruction error after the first epoch, as in log.csv: of the validation
	// samples for an autoencoder, of the training samples for a CDBN.
	Start      float64  `json:"start"`
	End        float64  `json:"end"`                  // the same for the network that is saved
	Activation *float64 `json:"activation,omitempty"` // mean activation of the units in the last epoch, as in log.csv; nil for autoencoders
}

// checkLayered checks the keys of a network that is trained layer by layer, which is always without
// labels: autoencoders and CDBNs (convolutional deep belief networks). It reports keys that have no
// effect, and layers or validation samples that are missing.
func (f *File) checkLayered() error {
	if !f.Network.layerwise() {
		return nil
	}
	for _, key := range []string{"target", "loss", "augment", "test", "save-every", "mixup", "label-noise", "tasks"} {
		if n := f.node.Get(key); n != nil {
			return n.Errorf("%s has no effect on a network that is trained without labels: leave it out", key)
		}
	}
	at := f.node.Get("network")
	switch k := f.Network; {
	case k.Autoencoder != nil && len(k.Autoencoder.Layers) == 0 || k.CDBN != nil && len(k.CDBN.Layers) == 0:
		return at.Errorf("a network needs at least one layer")
	case k.Autoencoder != nil && !f.Validation.given:
		return at.Errorf("autoencoders need validation samples: write validation: 0.1, for example")
	case k.CDBN != nil:
		return f.checkCDBN()
	}
	return nil
}

type layerTraining struct {
	*File
	Options
	dir      *folder
	identity string // hash of settings, data and initial weights
	shape    []int  // of a sample
	samples  int    // number of training samples
	log      layerLog
}

// runLayers trains a network layer by layer, and writes its files into the folder path. p is the
// preprocessing of the samples, whose Frame is the size at which they are read.
func (f *File) runLayers(ctx context.Context, data *datasets, p model.Preprocess, path string, o Options) (*Summary, error) {
	if len(data.shape) != 3 {
		return nil, f.node.Get("data").Errorf("samples have the shape %v: training without labels needs images", data.shape)
	}
	identity, err := f.identity(data, &network{})
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(path, f, identity)
	if err != nil || dir.finished != nil {
		return dir.summary(), err
	}
	dir.preprocess, _ = spec.PreprocessText(model.Preprocess{Frame: p.Frame})
	l := &layerTraining{File: f, Options: o, dir: dir, identity: identity, shape: data.shape, samples: data.train.Len()}
	x, err := collect(ctx, data.train, p)
	if err != nil {
		return nil, err
	}
	var validation tensor.Tensor
	if data.validation != nil {
		if validation, err = collect(ctx, data.validation, p); err != nil {
			return nil, err
		}
	}
	var out *layerResult
	if f.Network.CDBN != nil {
		out, err = l.trainCDBN(ctx, x)
	} else {
		out, err = l.trainAutoencoders(ctx, x, validation)
	}
	if err != nil {
		return nil, err
	}
	return l.finish(data, p, out)
}

type layerResult struct {
	model  *onnx.Model // takes preprocessed images
	layers []Layer
	images [][]tensor.Tensor // filters of the units of each layer
}

// collect reads samples into one tensor, n x c x h x w, normalised by mean and standard deviation.
func collect(ctx context.Context, src dataset.Source, p model.Preprocess) (tensor.Tensor, error) {
	var x tensor.Tensor
	at := 0
	for s, err := range dataset.Read(ctx, src, dataset.Indices(src.Len()), p.Frame, dataset.ReadOptions{}) {
		if err != nil {
			return x, err
		}
		if at == 0 {
			if err := p.Check(s.Input.Shape[0]); err != nil {
				return x, err
			}
			x = tensor.New(append([]int{src.Len()}, s.Input.Shape...)...)
		}
		if !slices.Equal(x.Shape[1:], s.Input.Shape) {
			return x, fmt.Errorf("%s has the shape %v, and earlier samples %v: resize them to one size", s.Name, s.Input.Shape, x.Shape[1:])
		}
		p.Normalise(x.At(at).Data, s.Input)
		at++
	}
	return x, nil
}

// finish writes the network, contact sheets of its filters (images that show many filters side by
// side), and the summary, in which a fingerprint is a hash of the samples. It removes the
// checkpoints.
func (l *layerTraining) finish(data *datasets, p model.Preprocess, out *layerResult) (*Summary, error) {
	m, err := train.WithPreprocessing(p, l.shape, out.model)
	if err != nil {
		return nil, l.node.Errorf("%w", err)
	}
	if err := l.writeSheets(out.images); err != nil {
		return nil, err
	}
	last := out.layers[len(out.layers)-1]
	s := &Summary{Name: l.Name, Tags: l.tags, Identity: l.identity, Model: modelFile, Samples: l.samples, Layers: out.layers, Parameters: m.Parameters(),
		CPUSeconds: l.dir.cpuSeconds(), Train: *resultOf(data.train.Fingerprint(), l.samples, train.Metrics{Loss: last.End, Accuracy: math.NaN(), MeanIoU: math.NaN()})}
	for _, layer := range out.layers {
		s.Epochs += layer.Epochs
	}
	s.Kept = s.Epochs // the total: each layer may keep an earlier epoch
	if data.validation != nil && l.Network.Autoencoder != nil {
		s.Train.Loss = l.log.last().train // last.End is of the validation samples
		s.Validation = resultOf(data.validation.Fingerprint(), data.validation.Len(), train.Metrics{Loss: last.End, Accuracy: math.NaN(), MeanIoU: math.NaN()})
	}
	seconds := l.log.seconds()
	s.Seconds, s.Rate = math.Round(seconds*10)/10, math.Round(float64(l.samples)*float64(s.Epochs)/max(seconds, 1e-3))
	if err := l.dir.finish(s, m); err != nil {
		return nil, err
	}
	return s, l.dropCheckpoints(len(out.layers))
}

// writeSheets writes a contact sheet for each layer: model.pictures/layer1.png and so on. Reports
// show them. It writes none unless inputs have 1 or 3 channels.
func (l *layerTraining) writeSheets(images [][]tensor.Tensor) error {
	if c := l.shape[0]; c != 1 && c != 3 {
		return nil
	}
	folder := l.dir.in(imagesFolder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for i, list := range images {
		side := list[0].Shape[1]
		columns, scale := int(math.Ceil(math.Sqrt(float64(len(list))))), max(1, 40/side) // filters of some 40 pixels
		sheet, err := filters.Sheet(list, columns, scale)
		if err != nil {
			return err
		}
		name := filepath.Join(folder, fmt.Sprintf("layer%d", i+1))
		if err := atomicfile.WriteFunc(name+".png", func(w io.Writer) error { return png.Encode(w, sheet) }); err != nil {
			return err
		}
		if err := atomicfile.WriteFunc(name+".json", func(w io.Writer) error { return json.NewEncoder(w).Encode(l.caption(i, len(list))) }); err != nil {
			return err
		}
	}
	return nil
}

func (l *layerTraining) caption(layer, units int) map[string]string {
	text := fmt.Sprintf("Filters of the %d units of layer %d, each normalised separately: 0 is grey.", units, layer+1)
	if layer > 0 {
		text += " Each is a linear combination of the filters of the layer below."
	}
	return map[string]string{"title": fmt.Sprintf("Filters of %s, layer %d", l.Name, layer+1), "caption": text, "alt": fmt.Sprintf("Sheet of %d filters.", units)}
}

func (l *layerTraining) checkpoint(layer int) checkpoint.File {
	return checkpoint.File(l.dir.in(fmt.Sprintf("checkpoint-%d.bin", layer+1)))
}

func (l *layerTraining) dropCheckpoints(layers int) error {
	for i := range layers {
		if err := os.Remove(string(l.checkpoint(i))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// recordEpoch adds an epoch of a layer (from 0) of layers to the log, writes the log and reports
// the progress.
func (l *layerTraining) recordEpoch(layer, layers int, row logRow) error {
	row.layer = layer + 1
	l.log = append(l.log, row)
	if l.Progress != nil {
		n := int64(l.samples)
		l.Progress(Progress{Name: l.Name, Done: (int64(layer)*int64(l.Epochs) + int64(row.epoch)) * n, Total: int64(layers*l.Epochs) * n, Epoch: layer*l.Epochs + row.epoch, Epochs: layers * l.Epochs,
			Metrics: train.Metrics{Loss: row.train, Accuracy: math.NaN(), MeanIoU: math.NaN()}})
	}
	return l.dir.writeLayerLog(l.log)
}
