package spec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/model"
)

// UnpackedData returns the path of data as it is, or for an archive the folder in the user's cache
// that it is unpacked into. A tar file is not unpacked, because tar files are read as they are, as
// the shards (parts) of a WebDataset. An archive of Parquet or tar files is an error.
func UnpackedData(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: no such file or folder", path)
	case err != nil:
		return "", err
	case info.IsDir() || !fetch.IsArchive(path) || strings.EqualFold(filepath.Ext(path), ".tar"):
		return path, nil
	}
	cache, err := fetch.Default()
	if err != nil {
		return "", err
	}
	folder, err := cache.Local(ctx, path, "")
	if err != nil {
		return "", err
	}
	kind, err := guessKind(folder)
	if kind == "parquet" || kind == "webdataset" {
		err = fmt.Errorf("%s is an archive of Parquet or tar files, which are read from folders only: unpack it and give the folder", path)
	}
	return folder, err
}

// OpenPath opens the data at a path. It determines the kind of data from the names and sizes of
// files: a folder or an archive of images or audio, CIFAR-10 or -100, IDX files such as MNIST, npy
// or npz, tar files of WebDataset, Parquet.
func OpenPath(ctx context.Context, path string) (dataset.Source, error) {
	path, err := UnpackedData(ctx, path)
	if err != nil {
		return nil, err
	}
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
	case "webdataset", "parquet":
		extension := map[string]string{"webdataset": ".tar", "parquet": ".parquet"}[kind]
		files, err := (&Study{}).findFiles(ctx, Path{text: path}, extension)
		if err != nil {
			return nil, err
		}
		if kind == "parquet" {
			return asSource(dataset.OpenParquet(ctx, dataset.ParquetOptions{Paths: files}))
		}
		return asSource(dataset.OpenShards(ctx, dataset.ShardsOptions{Paths: files}))
	case "arrays":
		return asSource(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: path}))
	}
	return asSource(dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: path}))
}

// PreprocessFor returns the preprocessing (resizing, cropping and normalisation of samples for a
// model) that a text describes: a preset such as imagenet, the path of a preprocessor_config.json,
// or the mapping that preprocess may be in a study file (which says what is measured), in braces.
// For an empty text it reads preprocessor_config.json beside the model, or else the metadata of the
// model. The result found is the path of the file that was read, or "" if none was.
func PreprocessFor(text, modelPath string) (p model.Preprocess, found string, err error) {
	if text == "" {
		if text = model.ConfigBeside(modelPath, preprocessorConfig); text == "" {
			p, _, recorded, err := RecordedPreprocess(modelPath)
			if recorded {
				found = modelPath
			}
			return p, found, err
		}
	}
	if filepath.Ext(text) == ".json" {
		p, err = model.ReadPreprocessorConfig(text)
		return p, text, err
	}
	if strings.HasPrefix(text, "{") {
		node, err := config.Parse("--preprocess", []byte(text), nil)
		if err != nil {
			return p, "", err
		}
		var keys Preprocess
		err = keys.DecodeNode(node)
		return keys.Preprocess, "", err
	}
	p, err = model.Preset(text)
	return p, "", err
}
