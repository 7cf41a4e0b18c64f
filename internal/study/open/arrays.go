package open

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/spec"
)

// Arrays are the keys of files of arrays.
type Arrays struct {
	Inputs   spec.Path  `key:"inputs,required" short:"true" doc:"npy, npz, safetensors or Parquet"`
	Key      string     `key:"key" doc:"name of the array in a file of several"`
	Labels   *spec.Path `key:"labels" doc:"file of labels, in one of these formats"`
	LabelKey string     `key:"label-key" doc:"name of the labels in a file of several"`
	Layout   string     `key:"layout" enum:"NCHW|NHWC|NHW|raw" doc:"axes of images; default: inferred from the number of channels. raw: the model takes the arrays as they are; a file has one for each input, under its name"`
	Max      float64    `key:"max" min:"0" doc:"value of white; default: 255 for uint8, else 1"`
}

// Open implements Source.
func (k *Arrays) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Inputs}, k.Labels)
	if err != nil {
		return nil, err
	}
	if k.Layout != rawLayout {
		return asSource(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: paths[0], ImagesKey: k.Key, Labels: paths[1], LabelsKey: k.LabelKey, Layout: k.Layout, Max: k.Max}))
	}
	if k.Max != 0 {
		return nil, d.At("arrays", "max").Errorf("max is the value of white of images: arrays with layout: raw are not scaled")
	}
	return asSource(dataset.OpenRawArrays(ctx, dataset.RawArraysOptions{Inputs: paths[0], Key: k.Key, Labels: paths[1], LabelsKey: k.LabelKey}))
}

// rawLayout is the layout of arrays that a model takes as they are.
const rawLayout = "raw"
