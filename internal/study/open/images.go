package open

import (
	"context"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study/spec"
)

// CIFAR10 are the keys of CIFAR-10 in its binary layout.
type CIFAR10 struct {
	Files  []spec.Path `key:"files,required" short:"true" doc:"binary files, in order, or the folder that contains them"`
	Part   string      `key:"part" enum:"test|train|all" doc:"part of a folder; default: test"`
	Labels string      `key:"labels" enum:"fine|coarse" default:"fine" doc:"labels of CIFAR-100"`
}

// Open implements Source.
func (k *CIFAR10) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, k.Files)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenCIFAR10(ctx, dataset.CIFAROptions{Paths: paths, Part: k.Part, Coarse: k.Labels == "coarse"}))
}

// CIFAR100 are the keys of CIFAR-100 in its binary layout.
type CIFAR100 CIFAR10

// Open implements Source.
func (k *CIFAR100) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, k.Files)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenCIFAR100(ctx, dataset.CIFAROptions{Paths: paths, Part: k.Part, Coarse: k.Labels == "coarse"}))
}

// IDX are the keys of MNIST and data sets in its format.
type IDX struct {
	Images spec.Path  `key:"images,required" short:"true" doc:"file of images, or the folder that contains it under its usual name"`
	Labels *spec.Path `key:"labels" doc:"file of labels; default: the file with the usual name beside the images"`
	Part   string     `key:"part" enum:"test|train|all" doc:"part of a folder; default: test"`
}

// Open implements Source.
func (k *IDX) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Images}, k.Labels)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenIDX(ctx, dataset.IDXOptions{Images: paths[0], Labels: paths[1], Part: k.Part}))
}

// Images are the keys of a folder of images.
type Images struct {
	Folder  spec.Path  `key:"folder,required" short:"true" doc:"folder of images"`
	Labels  *spec.Path `key:"labels" doc:"CSV file with the columns file and label (other columns are factors), lines of file and label, or ILSVRC2012_validation_ground_truth.txt"`
	Layout  string     `key:"layout" enum:"classes|flat|synsets" doc:"a folder for each class, no classes, or file names that start with a synset; default: inferred"`
	Pattern string     `key:"pattern" doc:"pattern of file names: the fields of {label}_{camera}.jpg are the label and factors"`
	Label   string     `key:"label" doc:"column of the CSV file or field of the pattern with the label; default: label"`
	Masks   *spec.Path `key:"masks" doc:"folder of masks with the class of each pixel: a PNG for each image, with its name"`
	Ignore  *int       `key:"ignore" min:"-1" max:"65535" doc:"value of pixels of a mask that have no class, -1: none; default: 255"`
}

// Open implements Source.
func (k *Images) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Folder}, k.Labels, k.Masks)
	if err != nil {
		return nil, err
	}
	folder, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: paths[0], Labels: paths[1], Layout: k.Layout, Pattern: k.Pattern, Label: k.Label})
	if err != nil || k.Masks == nil {
		return asSource(folder, err)
	}
	o := dataset.MasksOptions{Dir: paths[2], Ignore: 255}
	if k.Ignore != nil {
		o.Ignore = *k.Ignore
	}
	return dataset.WithMasks(ctx, folder, o)
}

// COCO are the keys of images with labelled boxes or masks in COCO's format.
type COCO struct {
	Annotations spec.Path `key:"annotations,required" doc:"JSON file in COCO's format: images, annotations, categories"`
	Images      spec.Path `key:"images,required" doc:"folder of the images"`

	Masks maskCategories `key:"masks" doc:"masks instead of boxes, from segmentation: true, or the names or ids of the categories that are classes 1, 2, ...; the others are background"`
}

// Open implements Source.
func (k *COCO) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Annotations, k.Images})
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenCOCO(ctx, dataset.COCOOptions{Annotations: paths[0], Images: paths[1], Masks: k.Masks.set, Categories: k.Masks.only}))
}

type maskCategories struct {
	set  bool
	only []string // nil: all
}

// DecodeNode implements config.Decoder.
func (m *maskCategories) DecodeNode(n *config.Node) error {
	if n.Kind == config.Bool {
		m.set = n.Bool
		return nil
	}
	if n.Kind != config.List || len(n.Items) == 0 {
		return n.Errorf("masks is true, or a list of categories, such as [person, car]")
	}
	for _, item := range n.Items {
		text, err := item.Scalar()
		if err != nil {
			return err
		}
		m.only = append(m.only, text)
	}
	m.set = true
	return nil
}

// JSONSchema implements config.Schemer.
func (maskCategories) JSONSchema() map[string]any {
	names := map[string]any{"type": "array", "items": map[string]any{"type": []string{"number", "string"}}, "minItems": 1}
	return map[string]any{"anyOf": []any{map[string]any{"type": "boolean"}, names}}
}

// Shards are the keys of the tar shards of a WebDataset.
type Shards struct {
	Shards []spec.Path `key:"shards,required" short:"true" doc:"tar files in order, ranges of them such as val-{000..049}.tar, patterns such as val-*.tar, URLs, or a folder"`
	Image  string      `key:"image" doc:"extension of the image of a sample, such as left.jpg; the only one with an image's extension where not given"`
	Label  string      `key:"label" doc:"extension of the member that holds the label, or json.KEY for a field of the member json; cls where not given"`
	Names  *spec.Path  `key:"names" doc:"text file with the name of a class in each line"`
}

// Open implements Source.
func (k *Shards) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findSeries(ctx, d, k.Shards, ".tar")
	if err != nil {
		return nil, err
	}
	o := dataset.ShardsOptions{Paths: paths, Image: k.Image, Label: k.Label}
	if k.Names != nil {
		if o.Names, err = f.local(ctx, *k.Names, ""); err != nil {
			return nil, err
		}
	}
	return asSource(dataset.OpenShards(ctx, o))
}

// Parquet are the keys of Parquet files with encoded images.
type Parquet struct {
	Files []spec.Path `key:"files,required" short:"true" doc:"files in order, ranges such as test-{00000..00013}-of-00014.parquet, patterns such as test-*.parquet, URLs, or a folder"`
	Image string      `key:"image" doc:"column of the encoded images; the only one that can hold them where not given"`
	Label string      `key:"label" doc:"column of the labels; label, fine_label or the only ClassLabel where not given"`
}

// Open implements Source.
func (k *Parquet) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findSeries(ctx, d, k.Files, ".parquet")
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenParquet(ctx, dataset.ParquetOptions{Paths: paths, Image: k.Image, Label: k.Label}))
}

// Pairs are the keys of ready-made pairs of clean and transformed samples.
type Pairs struct {
	Clean  spec.Path `key:"clean,required" doc:"folder of images, or npy or npz"`
	Moved  spec.Path `key:"moved,required" doc:"folder of the transformed images, or npy or npz"`
	By     string    `key:"by" enum:"name|row" doc:"how clean and transformed samples are matched; default: by name in folders, by row in arrays"`
	Layout string    `key:"layout" enum:"NCHW|NHWC|NHW|raw" doc:"of npy and npz files, as in arrays"`
}

// Open implements Source.
func (k *Pairs) Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error) {
	paths, err := f.findAll(ctx, d, []spec.Path{k.Clean, k.Moved})
	if err != nil {
		return nil, err
	}
	var sources [2]dataset.Source
	for i, path := range paths {
		isArray := strings.HasSuffix(path, ".npy") || strings.HasSuffix(path, ".npz")
		switch {
		case !isArray && k.Layout != "":
			return nil, d.At("pairs", "layout").Errorf("layout is for npy and npz files, and %s is a folder", path)
		case !isArray:
			sources[i], err = asSource(dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: path}))
		case k.Layout == rawLayout:
			sources[i], err = asSource(dataset.OpenRawArrays(ctx, dataset.RawArraysOptions{Inputs: path}))
		default:
			sources[i], err = asSource(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: path, Layout: k.Layout}))
		}
		if err != nil {
			return nil, err
		}
	}
	return asSource(dataset.Pair(ctx, sources[0], sources[1], k.By))
}
