package spec

import (
	"context"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/model"
)

// OpenPath opens the data at a path, whose kind is told by names and sizes: a folder of images or
// of sounds, CIFAR-10 or -100, MNIST and its kin, npy or npz.
func OpenPath(ctx context.Context, path string) (dataset.Source, error) {
	kind, err := guessKind(path)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "cifar10":
		return asSource(dataset.OpenCIFAR10(ctx, dataset.CIFAROptions{Paths: []string{path}}))
	case "cifar100":
		return asSource(dataset.OpenCIFAR100(ctx, dataset.CIFAROptions{Paths: []string{path}}))
	case "idx":
		return asSource(dataset.OpenIDX(ctx, dataset.IDXOptions{Images: path}))
	case "sound":
		return asSource(dataset.OpenAudio(ctx, dataset.AudioOptions{Dir: path}))
	case "arrays":
		return asSource(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: path}))
	}
	return asSource(dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: path}))
}

// PreprocessFor is the preprocessing that a text names: a preset such as imagenet, or the path of a
// preprocessor_config.json. An empty text stands for the preprocessor_config.json beside the model,
// and for none where there is none; found is the file that was taken.
func PreprocessFor(text, modelPath string) (p model.Preprocess, found string, err error) {
	if text == "" {
		beside := filepath.Join(filepath.Dir(modelPath), "preprocessor_config.json")
		if _, err := os.Stat(beside); err != nil {
			return p, "", nil
		}
		text = beside
	}
	if filepath.Ext(text) == ".json" {
		p, err = model.ReadPreprocessorConfig(text)
		return p, text, err
	}
	p, err = model.Preset(text)
	return p, "", err
}
