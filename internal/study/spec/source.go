package spec

import (
	"context"
	"reflect"
	"strings"

	"github.com/noether-ml/noether/dataset"
)

// An opener holds the keys of one kind of source in an entry of the list data of a study file, and
// opens the source. A kind of source is a format or generator of samples, such as cifar10.
type opener interface {
	open(ctx context.Context, s *Study, d Data) (dataset.Source, error)
}

// OpenData opens an entry of data: its source, the selection of samples, and their corruption
// (noise, blur and so on). An error at d.node names its line of the study file.
func (s *Study) OpenData(ctx context.Context, d Data) (dataset.Source, error) {
	src, err := s.openSource(ctx, d)
	if err == nil {
		src, err = d.chooseSamples(ctx, src, s.Seed)
	}
	if err != nil {
		return nil, err
	}
	src = d.corrupt(src, s.Seed)
	if src.Len() == 0 {
		return nil, d.node.Errorf("the data have no samples")
	}
	// The fingerprint is a hash of the samples.
	if f := src.Fingerprint(); d.Fingerprint != "" && d.Fingerprint != f {
		return nil, d.node.Get("fingerprint").Errorf("the fingerprint of the samples is %s and differs from that of the study: the data changed, or another version reads them; remove \"fingerprint\" to accept the new data", f)
	}
	return src, nil
}

// openSource opens the one kind of source that the entry names.
func (s *Study) openSource(ctx context.Context, d Data) (dataset.Source, error) {
	kinds, sources := d.sources()
	switch len(sources) {
	case 0:
		return nil, d.node.Errorf("an entry of data names one kind of source, such as cifar10 or images; this entry names none")
	case 1:
		return sources[0].open(ctx, s, d)
	}
	return nil, d.node.Errorf("an entry of data names one kind of source, such as cifar10 or images; this entry names %s", strings.Join(kinds, " and "))
}

// sources returns the kinds of source that the entry names, and their keys.
func (d Data) sources() (kinds []string, sources []opener) {
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Type.Kind() != reflect.Pointer || !field.IsExported() || v.Field(i).IsNil() {
			continue
		}
		if source, ok := v.Field(i).Interface().(opener); ok {
			kinds, sources = append(kinds, field.Tag.Get("key")), append(sources, source)
		}
	}
	return kinds, sources
}

func (k *cifar10Keys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, k.Files)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenCIFAR10(ctx, dataset.CIFAROptions{Paths: paths, Part: k.Part, Coarse: k.Labels == "coarse"}))
}

func (k *cifar100Keys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, k.Files)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenCIFAR100(ctx, dataset.CIFAROptions{Paths: paths, Part: k.Part, Coarse: k.Labels == "coarse"}))
}

func (k *idxKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Images}, k.Labels)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenIDX(ctx, dataset.IDXOptions{Images: paths[0], Labels: paths[1], Part: k.Part}))
}

func (k *imagesKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Folder}, k.Labels, k.Masks)
	if err != nil {
		return nil, err
	}
	folder, err := dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: paths[0], Labels: paths[1], Layout: k.Layout, Pattern: k.Pattern, Label: k.Label})
	if err != nil || k.Masks == nil {
		return asSource(folder, err)
	}
	// Ignore is the value of pixels without a class: by default 255, as in PASCAL VOC.
	o := dataset.MasksOptions{Dir: paths[2], Ignore: 255}
	if k.Ignore != nil {
		o.Ignore = *k.Ignore
	}
	return dataset.WithMasks(ctx, folder, o)
}

// open opens COCO, with masks of all categories or of those in k.Masks.only.
func (k *cocoKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Annotations, k.Images})
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenCOCO(ctx, dataset.COCOOptions{Annotations: paths[0], Images: paths[1], Masks: k.Masks.set, Categories: k.Masks.only}))
}

func (k *soundKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Folder}, k.Labels)
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenAudio(ctx, k.options(dataset.AudioOptions{Dir: paths[0], Labels: paths[1], Label: k.Label, Pattern: k.Pattern, Layout: k.Layout})))
}

func (k *libriKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Folder})
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenAudio(ctx, k.options(dataset.AudioOptions{Dir: paths[0], Label: k.Label, Layout: "librispeech"})))
}

// options adds the keys of audio items, the pieces of recordings that are samples, to the options.
// Fit says whether files of another length are padded, left out or split.
func (k itemKeys) options(o dataset.AudioOptions) dataset.AudioOptions {
	o.Rate, o.Length, o.Fit = int(k.Rate), k.Length, k.Fit
	return o
}

func (k *arraysKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Inputs}, k.Labels)
	if err != nil {
		return nil, err
	}
	if k.Layout != rawLayout {
		return asSource(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: paths[0], ImagesKey: k.Key, Labels: paths[1], LabelsKey: k.LabelKey, Layout: k.Layout, Max: k.Max}))
	}
	if k.Max != 0 {
		return nil, d.node.Get("arrays").Get("max").Errorf("max is the value of white of images: arrays with layout: raw are not scaled")
	}
	return asSource(dataset.OpenRawArrays(ctx, dataset.RawArraysOptions{Inputs: paths[0], Key: k.Key, Labels: paths[1], LabelsKey: k.LabelKey}))
}

// rawLayout is the layout of arrays that a model takes as they are.
const rawLayout = "raw"

// open opens tar files in the layout of WebDataset.
func (k *shardsKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findSeries(ctx, d, k.Shards, ".tar")
	if err != nil {
		return nil, err
	}
	o := dataset.ShardsOptions{Paths: paths, Image: k.Image, Label: k.Label}
	if k.Names != nil {
		if o.Names, err = s.localPath(ctx, *k.Names, ""); err != nil {
			return nil, err
		}
	}
	return asSource(dataset.OpenShards(ctx, o))
}

func (k *parquetKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findSeries(ctx, d, k.Files, ".parquet")
	if err != nil {
		return nil, err
	}
	return asSource(dataset.OpenParquet(ctx, dataset.ParquetOptions{Paths: paths, Image: k.Image, Label: k.Label}))
}

// open opens two folders, or two files of arrays: those of samples (clean) and of their transformed
// versions (moved), which k.By matches by name or by row.
func (k *pairsKeys) open(ctx context.Context, s *Study, d Data) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Clean, k.Moved})
	if err != nil {
		return nil, err
	}
	var sources [2]dataset.Source
	for i, path := range paths {
		isArray := strings.HasSuffix(path, ".npy") || strings.HasSuffix(path, ".npz")
		switch {
		case !isArray && k.Layout != "":
			return nil, d.node.Get("pairs").Get("layout").Errorf("layout is for npy and npz files, and %s is a folder", path)
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

func (k *shapesKeys) open(context.Context, *Study, Data) (dataset.Source, error) {
	o := dataset.ShapesOptions{N: k.N, Size: k.Size, Channels: k.Channels, Seed: k.Seed, Kinds: k.Kinds,
		Scale: k.Scale, Rotation: k.Rotation, X: k.X, Y: k.Y, Hue: k.Hue}
	if k.Figures != nil || k.Texture {
		return asSource(dataset.OpenScenes(dataset.ScenesOptions{ShapesOptions: o, Figures: k.Figures, Textured: k.Texture}))
	}
	return asSource(dataset.OpenShapes(o))
}

func (k *tonesKeys) open(context.Context, *Study, Data) (dataset.Source, error) {
	return asSource(dataset.OpenTones(dataset.TonesOptions{N: k.N, Rate: k.Rate, Length: k.Length, Seed: k.Seed,
		Pitch: k.Pitch, Loudness: k.Loudness, Beats: k.Beats, Bright: k.Bright}))
}

func (k *gratingsKeys) open(context.Context, *Study, Data) (dataset.Source, error) {
	return asSource(dataset.OpenGratings(dataset.GratingsOptions{Size: k.Size, Channels: k.Channels,
		Frequencies: k.Frequencies, Orientations: k.Orientations, Phases: k.Phases}))
}

// asSource converts a result to a Source. On an error it returns an untyped nil.
func asSource[S dataset.Source](s S, err error) (dataset.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// findAll returns the local paths of required files, then those of optional ones: "" for nil.
func (s *Study) findAll(ctx context.Context, d Data, paths []Path, optional ...*Path) ([]string, error) {
	if d.SHA256 != "" && len(paths) != 1 {
		return nil, d.node.Get("sha256").Errorf("sha256 is for one file, and this entry names %d: append #sha256=... to each URL", len(paths))
	}
	var out []string
	for _, p := range paths {
		found, err := s.localPath(ctx, p, d.SHA256)
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	for _, p := range optional {
		if p == nil {
			out = append(out, "")
			continue
		}
		found, err := s.localPath(ctx, *p, "")
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	return out, nil
}
