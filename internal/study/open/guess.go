package open

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/fetch"
)

// UnpackedData returns the path of data, or for an archive the folder in the user's cache that it
// is unpacked into. Tar files are read as they are (WebDataset). An archive of Parquet or tar files
// is an error.
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
	kind, err := GuessKind(folder)
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
	kind, err := GuessKind(path)
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
		files, err := new(Files).findFiles(ctx, path, extension)
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

// LabelTable returns the table of labels or factors in a folder of images or audio, and the samples
// that it lists: labels.csv, metadata.csv (of Hugging Face's folders) or the only CSV file. Without
// such a file the name is "". The error is that of a file that cannot be read as such a table.
func LabelTable(ctx context.Context, folder string) (string, dataset.Source, error) {
	kind, err := GuessKind(folder)
	if err != nil || kind != "images" && kind != "sound" {
		return "", nil, err
	}
	found, err := filepath.Glob(filepath.Join(escapePattern(folder), "*.csv"))
	if err != nil {
		return "", nil, err
	}
	table := ""
	for _, name := range []string{"metadata.csv", "labels.csv"} {
		if path := filepath.Join(folder, name); slices.Contains(found, path) {
			table = path
		}
	}
	switch {
	case table != "":
	case len(found) == 1:
		table = found[0]
	default:
		return "", nil, nil
	}
	var data dataset.Source
	if kind == "sound" {
		data, err = asSource(dataset.OpenAudio(ctx, dataset.AudioOptions{Dir: folder, Labels: table}))
	} else {
		data, err = asSource(dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: folder, Labels: table}))
	}
	return table, data, err
}

// RateOf returns the sampling rate of the first audio file in a folder that can be read, or 0 if
// there is none among its first 10,000 entries.
func RateOf(path string) int {
	rate, _ := findAudio(path)
	return rate
}

// findAudio returns RateOf, and whether all files that are audio or images are audio.
func findAudio(path string) (rate int, only bool) {
	seen, images, recordings := 0, 0, 0
	filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if seen++; seen > 10_000 {
			return fs.SkipAll
		}
		switch {
		case err != nil || e.IsDir():
		case dataset.IsImage(name):
			images++
		case audio.IsAudio(name):
			recordings++
			if info, err := audio.Probe(name); err == nil {
				rate = info.Rate
				return fs.SkipAll
			}
		}
		return nil
	})
	return rate, recordings > 0 && images == 0
}

// GuessKind returns the key of a study file for the kind of data at a path, such as idx for IDX
// files, by the names and sizes of files.
func GuessKind(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	name := strings.ToLower(filepath.Base(path))
	if info.IsDir() {
		for _, k := range []struct{ pattern, kind string }{
			// Such as data_batch_1.bin; train.bin and test.bin; train-images-idx3-ubyte.
			{"*_batch*.bin", "cifar10"}, {"t*.bin", "cifar100"}, {"*idx3*", "idx"}, {"*.parquet", "parquet"}, {"*.tar", "webdataset"},
		} {
			if m, _ := filepath.Glob(filepath.Join(escapePattern(path), k.pattern)); len(m) > 0 {
				return k.kind, nil
			}
		}
		if rate, only := findAudio(path); rate > 0 || only {
			return "sound", nil
		}
		return "images", nil
	}
	switch {
	case strings.HasSuffix(name, ".onnx"):
		return "", fmt.Errorf("%s is a model, not data: give the model first, then the data", path)
	case strings.HasSuffix(name, ".npy") || strings.HasSuffix(name, ".npz") || strings.HasSuffix(name, ".safetensors"):
		return "arrays", nil
	case strings.HasSuffix(name, ".parquet"):
		return "parquet", nil
	case strings.HasSuffix(name, ".tar"):
		return "webdataset", nil
	case strings.HasSuffix(name, ".h5") || strings.HasSuffix(name, ".hdf5") || strings.HasSuffix(name, ".mat"):
		return "", fmt.Errorf("%s is an HDF5 or MATLAB file, which is not read: save its arrays by numpy.save or numpy.savez, and give the .npy or .npz file", path)
	case fetch.IsArchive(name): // no IDX file, although its name may end in .gz; UnpackedData unpacks archives first
	case strings.Contains(name, "idx3") || strings.HasSuffix(name, ".gz"):
		return "idx", nil
	case strings.HasSuffix(name, ".bin") && info.Size()%3073 == 0: // a label and 32 x 32 x 3 bytes
		return "cifar10", nil
	case strings.HasSuffix(name, ".bin") && info.Size()%3074 == 0: // two labels and the image
		return "cifar100", nil
	}
	return "", fmt.Errorf("%s holds no data that Noether can read; give a folder or an archive (.tar.gz, .tgz, .zip) of images or audio, "+
		"CIFAR (.bin), IDX (idx3-ubyte, .gz), .npy or .npz, WebDataset shards (.tar), or Parquet files", path)
}
