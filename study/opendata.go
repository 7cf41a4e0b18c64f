package study

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/measure"
)

// openData is a data set of the study, opened; or that data set as one model sees it, with labels that are its outputs.
type openData struct {
	spec   Data
	source dataset.Source
	layout measure.Layout
	order  []int // order[place] is a place in the source: a keyed permutation

	keep       []int // outputs of the model that stay before the softmax; nil: all
	mismatch   error // why the labels are no outputs of the model; nil: they are
	unreadable *unreadable
	redrawn    *redrawn
	described  *map[int]dataset.Sample // by index; nil until somebody asks
}

func (s *Study) openData(ctx context.Context, spec Data) (*openData, error) {
	src, err := s.openSource(ctx, spec)
	if err == nil {
		src, err = spec.choose(ctx, src, s.Seed)
	}
	if err != nil {
		return nil, err
	}
	src = spec.damage(src, s.Seed)
	if src.Len() == 0 {
		return nil, spec.node.Errorf("there are no samples")
	}
	if f := src.Fingerprint(); spec.Fingerprint != "" && spec.Fingerprint != f {
		return nil, spec.node.Get("fingerprint").Errorf("the samples have the fingerprint %s: they are others than the study was made for", f)
	}
	return newOpenData(spec, src, s.Seed), nil
}

func newOpenData(spec Data, src dataset.Source, seed uint64) *openData {
	n := src.Len()
	return &openData{spec: spec, source: src, layout: measure.NewLayout(n),
		order: keyed.Rand(seed, "order", spec.Name).Perm(n), unreadable: &unreadable{n: n}, redrawn: &redrawn{}, described: new(map[int]dataset.Sample)}
}

// sound is what is known of the sounds before they are read; nil where the data are pictures.
func (d *openData) sound(ctx context.Context) *dataset.Sound {
	s, err := dataset.Describe(ctx, d.source, 0)
	if err != nil {
		return nil
	}
	return s.Sound
}

// size is the height and width of a picture as it comes; zero where it cannot be read, and of sounds.
func (d *openData) size(ctx context.Context) [2]int {
	if d.sound(ctx) != nil {
		return [2]int{}
	}
	s, err := d.source.At(ctx, 0, dataset.Frame{})
	if err != nil || s.Input.Rank() != 3 {
		return [2]int{}
	}
	return [2]int{s.Input.Shape[1], s.Input.Shape[2]}
}

// openSource opens the one kind of source that the entry names.
func (s *Study) openSource(ctx context.Context, d Data) (dataset.Source, error) {
	if kinds := d.kinds(); len(kinds) != 1 {
		return nil, d.node.Errorf("an entry of data names one kind of source, such as cifar10 or images; this names %s", strings.Join(append(kinds, "none")[:max(1, len(kinds))], " and "))
	}
	switch {
	case d.CIFAR10 != nil:
		paths, err := s.findAll(ctx, d, d.CIFAR10.Files)
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenCIFAR10(ctx, dataset.CIFAROptions{Paths: paths, Part: d.CIFAR10.Part, Coarse: d.CIFAR10.Labels == "coarse"}))
	case d.CIFAR100 != nil:
		paths, err := s.findAll(ctx, d, d.CIFAR100.Files)
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenCIFAR100(ctx, dataset.CIFAROptions{Paths: paths, Part: d.CIFAR100.Part, Coarse: d.CIFAR100.Labels == "coarse"}))
	case d.IDX != nil:
		paths, err := s.findAll(ctx, d, []Path{d.IDX.Images}, d.IDX.Labels)
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenIDX(ctx, dataset.IDXOptions{Images: paths[0], Labels: paths[1], Part: d.IDX.Part}))
	case d.Images != nil:
		paths, err := s.findAll(ctx, d, []Path{d.Images.Folder}, d.Images.Labels)
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: paths[0], Labels: paths[1], Layout: d.Images.Layout,
			Pattern: d.Images.Pattern, Label: d.Images.Label}))
	case d.Sound != nil:
		paths, err := s.findAll(ctx, d, []Path{d.Sound.Folder}, d.Sound.Labels)
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenSounds(ctx, d.Sound.options(dataset.SoundsOptions{Dir: paths[0], Labels: paths[1], Label: d.Sound.Label,
			Pattern: d.Sound.Pattern, Layout: d.Sound.Layout})))
	case d.Libri != nil:
		paths, err := s.findAll(ctx, d, []Path{d.Libri.Folder})
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenSounds(ctx, d.Libri.options(dataset.SoundsOptions{Dir: paths[0], Label: d.Libri.Label, Layout: "librispeech"})))
	case d.Arrays != nil:
		k := d.Arrays
		paths, err := s.findAll(ctx, d, []Path{k.Inputs}, k.Labels)
		if err != nil {
			return nil, err
		}
		return opened(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: paths[0], ImagesKey: k.Key, Labels: paths[1], LabelsKey: k.LabelKey, Layout: k.Layout, Max: k.Max}))
	case d.Join != nil:
		return s.openJoin(ctx, d.Join)
	case d.Pairs != nil:
		return s.openPairs(ctx, d, d.Pairs)
	case d.Shapes != nil:
		k := d.Shapes
		return opened(dataset.OpenShapes(dataset.ShapesOptions{N: k.N, Size: k.Size, Channels: k.Channels, Seed: k.Seed, Kinds: k.Kinds,
			Scale: k.Scale, Rotation: k.Rotation, X: k.X, Y: k.Y, Hue: k.Hue}))
	case d.Video != nil:
		return s.openVideo(ctx, d, d.Video)
	case d.Camera != nil:
		return s.openCamera(ctx, d, d.Camera)
	case d.Tones != nil:
		k := d.Tones
		return opened(dataset.OpenTones(dataset.TonesOptions{N: k.N, Rate: k.Rate, Length: k.Length, Seed: k.Seed,
			Pitch: k.Pitch, Loudness: k.Loudness, Beats: k.Beats, Bright: k.Bright}))
	default:
		k := d.Gratings
		return opened(dataset.OpenGratings(dataset.GratingsOptions{Size: k.Size, Channels: k.Channels,
			Frequencies: k.Frequencies, Orientations: k.Orientations, Phases: k.Phases}))
	}
}

// options adds what the keys say about items.
func (k itemKeys) options(o dataset.SoundsOptions) dataset.SoundsOptions {
	o.Rate, o.Length, o.Fit = int(k.Rate), k.Length, k.Fit
	return o
}

// opened keeps a typed nil from becoming a Source.
func opened[S dataset.Source](s S, err error) (dataset.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// kinds are the keys of the sources that the entry names.
func (d Data) kinds() []string {
	var out []string
	v := reflect.ValueOf(d)
	for _, f := range reflect.VisibleFields(v.Type()) {
		// Sources are the pointer fields that come before what is taken of them.
		if key := f.Tag.Get("key"); f.Type.Kind() == reflect.Pointer && key != "" && key != "split" && key != "corrupt" && !v.FieldByIndex(f.Index).IsNil() {
			out = append(out, key)
		}
	}
	return out
}

// findAll finds files that must be there, and optional ones ("" where they are not named).
func (s *Study) findAll(ctx context.Context, d Data, paths []Path, optional ...*Path) ([]string, error) {
	if d.SHA256 != "" && len(paths) != 1 {
		return nil, d.node.Get("sha256").Errorf("sha256 is of one file, and this entry names %d: write #sha256=... behind each URL", len(paths))
	}
	var out []string
	for _, p := range paths {
		found, err := s.find(ctx, p, d.SHA256)
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
		found, err := s.find(ctx, *p, "")
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	return out, nil
}

// openPairs opens two folders, or two files of arrays, as pairs.
func (s *Study) openPairs(ctx context.Context, d Data, k *pairsKeys) (dataset.Source, error) {
	paths, err := s.findAll(ctx, d, []Path{k.Clean, k.Moved})
	if err != nil {
		return nil, err
	}
	var halves [2]dataset.Source
	for i, path := range paths {
		if strings.HasSuffix(path, ".npy") || strings.HasSuffix(path, ".npz") {
			halves[i], err = opened(dataset.OpenArrays(ctx, dataset.ArraysOptions{Images: path}))
		} else {
			halves[i], err = opened(dataset.OpenFolder(ctx, dataset.FolderOptions{Dir: path}))
		}
		if err != nil {
			return nil, err
		}
	}
	return opened(dataset.Pair(ctx, halves[0], halves[1], k.By))
}

// choose takes of a source what the entry says: by factors, then split, then shuffle, then limit.
func (d Data) choose(ctx context.Context, src dataset.Source, seed uint64) (dataset.Source, error) {
	first, last := d.measured()
	src, err := d.measure(src, first)
	if err != nil {
		return nil, err
	}
	if src, err = d.taken(ctx, src, seed); err != nil {
		return nil, err
	}
	return d.measure(src, last)
}

// measured are the factors to be computed, those that where asks for first: the others are not needed to choose samples.
func (d Data) measured() (first, last []string) {
	for _, name := range d.Factors {
		if _, asked := d.Where[name]; asked {
			first = append(first, name)
		} else {
			last = append(last, name)
		}
	}
	return first, last
}

func (d Data) measure(src dataset.Source, names []string) (dataset.Source, error) {
	src, err := dataset.Measure(src, names)
	if err != nil {
		return nil, d.node.Get("factors").Errorf("%v", err)
	}
	return src, nil
}

// taken is what choose takes.
func (d Data) taken(ctx context.Context, src dataset.Source, seed uint64) (dataset.Source, error) {
	var err error
	if len(d.Where) > 0 {
		if src, err = dataset.Where(ctx, src, d.conditions()); err != nil {
			return nil, d.node.Get("where").Errorf("where: %v", err)
		}
		if src.Len() == 0 {
			return nil, d.node.Get("where").Errorf("where: no sample is like that")
		}
	}
	if k := d.Split; k != nil {
		from, to := 0.0, k.Fraction
		if k.Of > 0 {
			from, to = float64(k.Part-1)/float64(k.Of), float64(k.Part)/float64(k.Of)
		}
		labelled := src.Classes() != nil
		if src, err = dataset.Split(ctx, src, from, to, dataset.Drawing{Seed: k.Seed, Stratified: labelled}); err != nil {
			return nil, d.node.Get("split").Errorf("%v", err)
		}
	}
	if d.Stratified {
		return dataset.Draw(ctx, src, d.Limit, dataset.Drawing{Seed: seed, Stratified: true})
	}
	if d.Shuffle {
		src = dataset.Shuffle(src, seed)
	}
	if d.Limit > 0 {
		src = dataset.Limit(src, d.Limit)
	}
	return src, nil
}

func (d Data) conditions() map[string]dataset.Condition {
	out := map[string]dataset.Condition{}
	for factor, w := range d.Where {
		out[factor] = w.Condition
	}
	return out
}

// under is the data as a model of the given number of classes sees them: labels are its outputs.
func (d *openData) under(classes int) *openData {
	out := *d
	out.described = new(map[int]dataset.Sample) // whose labels are this model's outputs
	names := d.source.Classes()
	if names == nil || classes == 0 {
		return &out
	}
	to, restrict, err := d.spec.outputs(names, classes)
	if err == nil {
		outputs := outputNames(names, to, classes)
		if restrict {
			out.source, out.keep, err = dataset.Restrict(d.source, to, outputs)
		} else {
			out.source, err = dataset.MapClasses(d.source, to, outputs)
		}
	}
	if err != nil {
		out.mismatch = d.spec.place(err)
		out.source, err = dataset.MapClasses(d.source, slices.Repeat([]int{dataset.NoLabel}, len(names)), outputNames(nil, nil, classes))
		if err != nil {
			panic(err) // no label is always a label
		}
	}
	return &out
}

// place points at classes, or at the entry where they are not named.
func (d Data) place(err error) error {
	at := d.node
	if at == nil {
		return err
	}
	if classes := at.Get("classes"); classes != nil {
		at = classes
	}
	return at.Errorf("%v", err)
}

// outputs tells which output of a model each class of the data is, and whether other outputs are left out.
func (d Data) outputs(names []string, classes int) (to []int, restrict bool, err error) {
	synsets := dataset.ImageNetSynsets()
	known := classes == len(synsets) && !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(synsets, n) })
	switch {
	case len(d.Classes) == 1 && d.Classes[0] == "present":
		if !known {
			return nil, false, fmt.Errorf("classes: present wants data whose classes are ImageNet synsets and a model of %d classes", len(synsets))
		}
		to, err = dataset.MatchClasses(names, synsets)
		return to, true, err
	case d.Classes != nil:
		to, err = d.listedOutputs(names, synsets)
		return to, true, err
	case known:
		to, err = dataset.MatchClasses(names, synsets)
		return to, false, err
	case len(names) == classes || len(names) < classes && numbered(names):
		for i := range names {
			to = append(to, i)
		}
		return to, false, nil
	}
	return nil, false, fmt.Errorf("the data have %d classes and the model %d: say with classes: which output each class is (%s, ...)", len(names), classes, names[0])
}

func (d Data) listedOutputs(names, synsets []string) ([]int, error) {
	if len(d.Classes) != len(names) {
		return nil, fmt.Errorf("classes: names %d outputs for the %d classes of the data", len(d.Classes), len(names))
	}
	to := make([]int, len(names))
	for i, c := range d.Classes {
		if at := slices.Index(synsets, c); at >= 0 {
			to[i] = at
			continue
		}
		v, err := strconv.Atoi(c)
		if err != nil {
			return nil, fmt.Errorf("classes: %q is neither an index of an output nor an ImageNet synset", c)
		}
		to[i] = v
	}
	return to, nil
}

// numbered reports whether classes are named by their own numbers, as the labels of arrays are.
func numbered(names []string) bool {
	for i, n := range names {
		if n != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// outputNames names a model's outputs by the data's classes where they are known, else by number.
func outputNames(names []string, to []int, classes int) []string {
	out := make([]string, classes)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	for i, o := range to {
		if o >= 0 && o < classes {
			out[o] = names[i]
		}
	}
	return out
}

// classNames are those of the predictions on these data.
func (d *openData) classNames(classes int) []string {
	if classes == 0 {
		return nil
	}
	if names := d.source.Classes(); names != nil {
		return names
	}
	return outputNames(nil, nil, classes)
}

// redrawn counts the values of transformations that were drawn again, by the transformation's name.
type redrawn struct {
	mu sync.Mutex
	by map[string]*[2]int // thrown away, and draws in all
}

func (r *redrawn) add(name string, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*[2]int{}
	}
	if r.by[name] == nil {
		r.by[name] = &[2]int{}
	}
	r.by[name][0] += again
	r.by[name][1] += 1 + again
}

// warnings are sentences for the record of a run.
func (r *redrawn) warnings(data string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.by)) {
		if n := r.by[name]; n[0] > 0 {
			out = append(out, fmt.Sprintf("data %s: %d of %d values drawn for %s cannot be had, and were drawn again", data, n[0], n[1], name))
		}
	}
	return out
}

// unreadable gathers the samples that could not be read.
type unreadable struct {
	n  int // samples of the data
	mu sync.Mutex
	by map[string]bool
}

func (u *unreadable) add(names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[string]bool{}
	}
	for _, n := range names {
		u.by[n] = true
	}
}

// note takes down a sample that cannot be read; that they are too many is an error.
func (d *openData) note(bad *dataset.BadSample) error {
	d.unreadable.add(bad.Name)
	if err := d.unreadable.tooMany(bad.Err); err != nil {
		return fmt.Errorf("data %s: %w", d.spec.Name, err)
	}
	return nil
}

// names are sorted.
func (u *unreadable) names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []string
	for n := range u.by {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// tooMany is the error of more than 1 % unreadable samples.
func (u *unreadable) tooMany(last error) error {
	names := u.names()
	if float64(len(names)) <= math.Floor(float64(u.n)/100) {
		return nil
	}
	return fmt.Errorf("%d of %d samples cannot be read, more than 1 %%; the first is %s: %w", len(names), u.n, names[0], last)
}
