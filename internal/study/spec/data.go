package spec

import (
	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
)

// Data is an entry of data in a study file, which says what is measured: a name, one kind of
// source, and the selection of samples. Of the pointers from CIFAR10 to Camera exactly one is set:
// that of the source. A factor is a known property of each sample, such as its speaker; a
// trajectory is the sequence of patches at one place in consecutive frames. The resolved study is
// the copy of the study in the results, with variables filled in.
type Data struct {
	Name string `key:"name,required" doc:"name in the scores, and part of the random seed of these data"`

	CIFAR10  *cifar10Keys  `key:"cifar10" doc:"CIFAR-10 in its binary layout: a file, several files, or the folder"`
	CIFAR100 *cifar100Keys `key:"cifar100" doc:"CIFAR-100 in its binary layout"`
	IDX      *idxKeys      `key:"idx" doc:"MNIST and data sets in its format: the file of images, also compressed (.gz)"`
	Sound    *soundKeys    `key:"sound" doc:"a folder of WAV and FLAC files, labelled by folders, by a pattern of their names, or by a CSV"`
	Libri    *libriKeys    `key:"librispeech" doc:"LibriSpeech as published: SPEAKER/CHAPTER/*.flac with transcripts, which give the factor words-per-second"`
	Images   *imagesKeys   `key:"images" doc:"a folder of images or its archive; labels come from a folder for each class, from synset names, or from a CSV file"`
	COCO     *cocoKeys     `key:"coco" doc:"images with labelled boxes or masks, in COCO's format"`
	Arrays   *arraysKeys   `key:"arrays" doc:"npy or npz: images, or with layout: raw the inputs of the model, such as token ids"`
	Shards   *shardsKeys   `key:"webdataset" doc:"tar shards of a WebDataset: files, ranges such as val-{000..049}.tar, patterns, URLs, or a folder of them"`
	Parquet  *parquetKeys  `key:"parquet" doc:"Parquet files with a column of encoded images, as Hugging Face datasets stores them"`
	Pairs    *pairsKeys    `key:"pairs" doc:"ready-made pairs of clean and transformed images or arrays, instead of a transformation"`
	Join     *joinKeys     `key:"join" doc:"several data entries joined in order, each with a name: {train: {...}, test: {...}}; the factor part identifies them"`
	Shapes   *shapesKeys   `key:"shapes" doc:"synthetic figures with known factors"`
	Tones    *tonesKeys    `key:"tones" doc:"synthetic audio with known factors"`
	Gratings *gratingsKeys `key:"gratings" doc:"sinusoidal gratings of Goodfellow et al. 2009"`
	Video    *videoKeys    `key:"video" doc:"patches of video files, animated GIFs or folders of frames, with trajectories over time"`
	Camera   *cameraKeys   `key:"camera" doc:"patches of still images under a simulated moving camera, with trajectories over time"`

	Where       map[string]factorValues `key:"where" doc:"only samples whose factors (or label) have these values: {duration: [0, 4], speaker: {values: [theo, lucas]}}; [low, high] is a range"`
	Factors     []string                `key:"factors" doc:"factors that are computed from the samples: hue, saturation, value (means over the pixels; hue 0 to 179, the others 0 to 255, as in OpenCV), level (of audio: its root mean square in dB relative to 1, dBFS)"`
	Corrupt     *corruptKeys            `key:"corrupt" doc:"corrupts the samples as in ImageNet-C and CIFAR-10-C; transformations are applied to the corrupted samples"`
	Split       *splitKeys              `key:"split" doc:"a part of the samples, selected at random and stratified by label"`
	Shuffle     bool                    `key:"shuffle" doc:"shuffle before the limit is applied; the seed of the study determines the order"`
	Limit       int                     `key:"limit" min:"1" doc:"use only the first N samples"`
	Stratified  bool                    `key:"stratified" doc:"the limit draws from each class in its proportion"`
	Classes     []string                `key:"classes" doc:"the model's output for each class of the data, in order: an index, the model's name of it, or an ImageNet synset (a WordNet ID such as n01440764); or present, if the classes of the data are synsets. The other outputs are removed before the softmax"`
	SHA256      string                  `key:"sha256" doc:"SHA-256 of the data file, if the entry is a single file; a different hash is an error"`
	Fingerprint string                  `key:"fingerprint" doc:"hash of the samples; a different hash is an error. A run writes it into the resolved study"`

	node *config.Node // the entry in the file
}

// A type whose name ends in Keys holds the keys that are nested below one key of an entry, such as
// cifar10; the tags document them. A key with the tag short may be left out: images: photos is
// images: {folder: photos}.

type cifar10Keys struct {
	Files  []Path `key:"files,required" short:"true" doc:"binary files, in order, or the folder that contains them"`
	Part   string `key:"part" enum:"test|train|all" doc:"part of a folder; default: test"`
	Labels string `key:"labels" enum:"fine|coarse" default:"fine" doc:"labels of CIFAR-100"`
}

type cifar100Keys cifar10Keys

type idxKeys struct {
	Images Path   `key:"images,required" short:"true" doc:"file of images, or the folder that contains it under its usual name"`
	Labels *Path  `key:"labels" doc:"file of labels; default: the file with the usual name beside the images"`
	Part   string `key:"part" enum:"test|train|all" doc:"part of a folder; default: test"`
}

type imagesKeys struct {
	Folder  Path   `key:"folder,required" short:"true" doc:"folder of images"`
	Labels  *Path  `key:"labels" doc:"CSV file with the columns file and label (other columns are factors), lines of file and label, or ILSVRC2012_validation_ground_truth.txt"`
	Layout  string `key:"layout" enum:"classes|flat|synsets" doc:"a folder for each class, no classes, or file names that start with a synset; default: inferred"`
	Pattern string `key:"pattern" doc:"pattern of file names: the fields of {label}_{camera}.jpg are the label and factors"`
	Label   string `key:"label" doc:"column of the CSV file or field of the pattern with the label; default: label"`
	Masks   *Path  `key:"masks" doc:"folder of masks with the class of each pixel: a PNG for each image, with its name"`
	Ignore  *int   `key:"ignore" min:"-1" max:"65535" doc:"value of pixels of a mask that have no class, -1: none; default: 255"`
}

type cocoKeys struct {
	Annotations Path `key:"annotations,required" doc:"JSON file in COCO's format: images, annotations, categories"`
	Images      Path `key:"images,required" doc:"folder of the images"`

	Masks maskCategories `key:"masks" doc:"masks instead of boxes, from segmentation: true, or the names or ids of the categories that are classes 1, 2, ...; the others are background"`
}

// maskCategories are the categories that masks have: true for all, or a list of names and ids.
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

type soundKeys struct {
	Folder  Path   `key:"folder,required" short:"true" doc:"folder of WAV and FLAC files"`
	Labels  *Path  `key:"labels" doc:"CSV file with the columns file and label (other columns are factors), or lines of file and label"`
	Label   string `key:"label" doc:"column of the CSV file or field of the pattern with the label; default: label"`
	Pattern string `key:"pattern" doc:"pattern of file names: the fields of {label}_{speaker}_{take}.wav are the label and factors"`
	Layout  string `key:"layout" enum:"classes|flat" doc:"a folder for each class, or no classes; default: inferred"`
	itemKeys
}

type libriKeys struct {
	Folder Path   `key:"folder,required" short:"true" doc:"folder of the archive, or a parent of it"`
	Label  string `key:"label" enum:"speaker|chapter" doc:"classes of the samples; default: none"`
	itemKeys
}

// itemKeys set the sampling rate of audio, and the length of the items: the pieces of audio files
// that are the samples of the data.
type itemKeys struct {
	Rate   sampleRate `key:"rate" doc:"samples per second that audio is resampled to, or model: the rate of each model. Without it, the audio must have the rate of the model"`
	Length float64    `key:"length" min:"0" doc:"seconds of an item; default: the length that the model takes, else whole files"`
	Fit    string     `key:"fit" enum:"pad|crop|split" doc:"pad (default): shorter files are padded with zeros; crop: they are left out as unreadable; split: files are cut into several items. With pad and crop, longer files are cropped at their centre"`
}

// A sampleRate is a number of samples per second, or dataset.ModelRate.
type sampleRate int

// DecodeNode implements config.Decoder.
func (r *sampleRate) DecodeNode(n *config.Node) error {
	if n.Kind == config.String && n.Text == "model" {
		*r = dataset.ModelRate
		return nil
	}
	v, err := n.Number()
	if err != nil || v < 1 || v != float64(int(v)) {
		return n.Errorf("a rate is an integer number of samples per second, or model")
	}
	*r = sampleRate(v)
	return nil
}

// JSONSchema implements config.Schemer.
func (sampleRate) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 1}, map[string]any{"enum": []string{"model"}}}}
}

// factorValues are the accepted values of a factor: one value, a range [low, high], or {values:
// [...]}.
type factorValues struct{ dataset.Condition }

// DecodeNode implements config.Decoder.
func (w *factorValues) DecodeNode(n *config.Node) error {
	if n.Kind == config.Map && len(n.Pairs) == 1 {
		key, value := n.Pairs[0].Key, n.Pairs[0].Value
		switch {
		case key.Text == "range":
			return w.DecodeNode(value)
		case key.Text != "values":
			return key.Unknown("key", []string{"values", "range"})
		case value.Kind != config.List || len(value.Items) == 0:
			return value.Errorf("values is a list, such as [0, 1, 2]")
		}
		for _, item := range value.Items {
			text, err := item.Scalar()
			if err != nil {
				return err
			}
			w.Values = append(w.Values, text)
		}
		return nil
	}
	if n.Kind == config.List {
		limits, err := decodeRange(n)
		w.Low, w.High = limits.Low, limits.High
		if err == nil && limits.Low > limits.High {
			err = n.Errorf("the range %v has its ends exchanged", limits)
		}
		return err
	}
	text, err := n.Scalar()
	w.Values = []string{text}
	return err
}

// JSONSchema implements config.Schemer.
func (factorValues) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": []string{"number", "string"}}, rangeOfNumbers,
		map[string]any{"type": "object", "properties": map[string]any{"values": listOfValues, "range": rangeOfNumbers}, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	}}
}

type arraysKeys struct {
	Inputs   Path    `key:"inputs,required" short:"true" doc:"npy, or npz"`
	Key      string  `key:"key" doc:"name of the array in an npz"`
	Labels   *Path   `key:"labels" doc:"npy or npz of labels"`
	LabelKey string  `key:"label-key" doc:"name of the labels in an npz"`
	Layout   string  `key:"layout" enum:"NCHW|NHWC|NHW|raw" doc:"axes of images; default: inferred from the number of channels. raw: the model takes the arrays as they are; an npz has one for each input, under its name"`
	Max      float64 `key:"max" min:"0" doc:"value of white; default: 255 for uint8, else 1"`
}

type shardsKeys struct {
	Shards []Path `key:"shards,required" short:"true" doc:"tar files in order, ranges of them such as val-{000..049}.tar, patterns such as val-*.tar, URLs, or a folder"`
	Image  string `key:"image" doc:"extension of the image of a sample, such as left.jpg; the only one with an image's extension where not given"`
	Label  string `key:"label" doc:"extension of the member that holds the label, or json.KEY for a field of the member json; cls where not given"`
	Names  *Path  `key:"names" doc:"text file with the name of a class in each line"`
}

type parquetKeys struct {
	Files []Path `key:"files,required" short:"true" doc:"files in order, ranges such as test-{00000..00013}-of-00014.parquet, patterns such as test-*.parquet, URLs, or a folder"`
	Image string `key:"image" doc:"column of the encoded images; the only one that can hold them where not given"`
	Label string `key:"label" doc:"column of the labels; label, fine_label or the only ClassLabel where not given"`
}

type pairsKeys struct {
	Clean  Path   `key:"clean,required" doc:"folder of images, or npy or npz"`
	Moved  Path   `key:"moved,required" doc:"folder of the transformed images, or npy or npz"`
	By     string `key:"by" enum:"name|row" doc:"how clean and transformed samples are matched; default: by name in folders, by row in arrays"`
	Layout string `key:"layout" enum:"NCHW|NHWC|NHW|raw" doc:"of npy and npz files, as in arrays"`
}

type shapesKeys struct {
	N        int       `key:"n" default:"1000" min:"1" doc:"samples"`
	Size     int       `key:"size" default:"32" min:"4" max:"4096" doc:"side in pixels"`
	Channels int       `key:"channels" default:"3" min:"1" max:"3" doc:"3: colour, 1: white on black"`
	Seed     uint64    `key:"seed" default:"1" doc:"seed of the random factors"`
	Kinds    []string  `key:"kinds" doc:"kinds of figures; default: all"`
	Scale    []float64 `key:"scale" doc:"[low, high]: diameter of the circumscribed circle, as a fraction of the side"`
	Rotation []float64 `key:"rotation" doc:"[low, high]: degrees"`
	X        []float64 `key:"x" doc:"[low, high]: offset to the right, as a fraction of the side"`
	Y        []float64 `key:"y" doc:"[low, high]: offset downwards, as a fraction of the side"`
	Hue      []float64 `key:"hue" doc:"[low, high]: degrees"`
	Figures  []int     `key:"figures" doc:"[fewest, most] figures of an image; with this key or texture, samples have masks: the class of each pixel"`
	Texture  bool      `key:"texture" doc:"a textured background, not black"`
}

type tonesKeys struct {
	N        int       `key:"n" default:"1000" min:"1" doc:"samples"`
	Rate     int       `key:"rate" default:"16000" min:"1000" doc:"samples per second"`
	Length   float64   `key:"length" default:"1" min:"0" doc:"seconds"`
	Seed     uint64    `key:"seed" default:"1" doc:"seed of the random factors"`
	Pitch    []float64 `key:"pitch" doc:"[low, high]: Hz, uniform on a logarithmic scale"`
	Loudness []float64 `key:"loudness" doc:"[low, high]: root mean square during a tone, in dB relative to an amplitude of 1 (dBFS)"`
	Beats    []float64 `key:"beats" doc:"[low, high]: tones per second"`
	Bright   []float64 `key:"bright" doc:"[low, high]: amplitude of each harmonic relative to the one below it"`
}

type gratingsKeys struct {
	Size         int       `key:"size" default:"32" min:"4" max:"4096" doc:"side in pixels"`
	Channels     int       `key:"channels" default:"3" min:"1" max:"3" doc:"3 or 1"`
	Frequencies  []float64 `key:"frequencies" doc:"radians per unit of length, where the side is pi; default: 2, 4, 6, 8"`
	Orientations []float64 `key:"orientations" doc:"degrees; default: 21 values from 0 to 180"`
	Phases       []float64 `key:"phases" doc:"units of length, where the side is pi; default: 21 values from 0 to pi"`
}

type splitKeys struct {
	Part     int     `key:"part" min:"1" doc:"number of the part, from 1"`
	Of       int     `key:"of" min:"2" doc:"number of equal, disjoint parts"`
	Fraction float64 `key:"fraction" min:"0" max:"1" doc:"fraction of the samples, instead of part and of"`
	Seed     uint64  `key:"seed" default:"1" doc:"seed of the shuffle; parts of the same seed do not overlap"`
}

// check returns an error for keys that cannot be combined.
func (d Data) check() error {
	if d.Stratified && d.Limit == 0 {
		return d.node.Get("stratified").Errorf("stratified needs a limit")
	}
	if d.Corrupt != nil && d.Pairs != nil {
		return d.node.Get("corrupt").Errorf("ready-made pairs cannot be corrupted: clean and transformed samples would no longer match")
	}
	if k := d.Split; k != nil {
		split := d.node.Get("split")
		parts, fraction := k.Part > 0 || k.Of > 0, k.Fraction > 0
		switch {
		case parts == fraction:
			return split.Errorf("a split is {part: 1, of: 5}, or {fraction: 0.2}")
		case parts && (k.Part == 0 || k.Of == 0 || k.Part > k.Of):
			return split.Errorf("part %d of %d does not exist: write {part: 1, of: 5}, for instance", k.Part, k.Of)
		}
	}
	return nil
}

// SetFingerprint writes the fingerprint of the samples into the study.
func (d Data) SetFingerprint(fingerprint string) { d.node.Set("fingerprint", fingerprint) }

// Kind returns the key of the source that the entry names, such as cifar10.
func (d Data) Kind() string {
	if kinds, _ := d.sources(); len(kinds) > 0 {
		return kinds[0]
	}
	return ""
}
