package study

import (
	"github.com/noether-ml/noether/internal/config"
)

// Data is an entry of data: a name, one kind of source, and what is taken of it.
type Data struct {
	Name string `key:"name,required" doc:"name in the scores, and part of the key of every random draw on these data"`

	CIFAR10  *cifarKeys    `key:"cifar10" doc:"CIFAR-10 in its binary layout: a file, several files, or the folder"`
	CIFAR100 *cifarKeys    `key:"cifar100" doc:"CIFAR-100 in its binary layout"`
	IDX      *idxKeys      `key:"idx" doc:"MNIST and its kin: the file of images (.gz too)"`
	Images   *imagesKeys   `key:"images" doc:"a folder of images, or an archive of one, with a class a folder, synset names, or a CSV of labels"`
	Arrays   *arraysKeys   `key:"arrays" doc:"npy or npz: N x C x H x W or N x H x W x C"`
	Pairs    *pairsKeys    `key:"pairs" doc:"ready-made pairs, which stand in for a transformation"`
	Shapes   *shapesKeys   `key:"shapes" doc:"synthetic figures whose factors are known"`
	Gratings *gratingsKeys `key:"gratings" doc:"sinusoidal gratings of Goodfellow et al. 2009"`
	Video    *videoKeys    `key:"video" doc:"patches of video files, animated GIFs or folders of frames, with trajectories over time"`
	Camera   *cameraKeys   `key:"camera" doc:"patches of still images that a simulated camera moves over, with trajectories over time"`

	Corrupt     *corruptKeys `key:"corrupt" doc:"damages the samples as the test sets of ImageNet-C and CIFAR-10-C are; transformations act on top"`
	Split       *splitKeys   `key:"split" doc:"a part of the samples, by a keyed shuffle stratified by label"`
	Shuffle     bool         `key:"shuffle" doc:"shuffle before the limit is taken, keyed by the study's seed"`
	Limit       int          `key:"limit" min:"1" doc:"the first so many samples"`
	Stratified  bool         `key:"stratified" doc:"the limit takes as many samples of each class"`
	Classes     []string     `key:"classes" doc:"which of the model's outputs each class of the data is, in order: indices, or ImageNet synsets; or the one word present, where the classes are synsets. The other outputs are left out before the softmax"`
	SHA256      string       `key:"sha256" doc:"of the one file that the entry names, where it names one; checked where given"`
	Fingerprint string       `key:"fingerprint" doc:"of the samples; checked where given. A run writes it into the resolved study"`

	node *config.Node // the entry in the file
}

type cifarKeys struct {
	Files  []Path `key:"files,required" short:"true" doc:"binary files, in order, or the folder that holds them"`
	Part   string `key:"part" enum:"test|train|all" doc:"of a folder; test by default"`
	Labels string `key:"labels" enum:"fine|coarse" default:"fine" doc:"of CIFAR-100"`
}

type idxKeys struct {
	Images Path   `key:"images,required" short:"true" doc:"file of images, or the folder that holds it under its usual name"`
	Labels *Path  `key:"labels" doc:"file of labels; found by the usual names beside the images"`
	Part   string `key:"part" enum:"test|train|all" doc:"of a folder; test by default"`
}

type imagesKeys struct {
	Folder Path   `key:"folder,required" short:"true" doc:"folder of images"`
	Labels *Path  `key:"labels" doc:"CSV with the columns file and label, and factors"`
	Layout string `key:"layout" enum:"classes|flat|synsets" doc:"a class a folder, no classes, or file names that start with a synset; found out where not given"`
}

type arraysKeys struct {
	Inputs   Path    `key:"inputs,required" short:"true" doc:"npy, or npz"`
	Key      string  `key:"key" doc:"name of the array in an npz"`
	Labels   *Path   `key:"labels" doc:"npy or npz of labels"`
	LabelKey string  `key:"label-key" doc:"name of the labels in an npz"`
	Layout   string  `key:"layout" enum:"NCHW|NHWC|NHW" doc:"found out by the number of channels where not given"`
	Max      float64 `key:"max" min:"0" doc:"the value that stands for white; 255 for uint8, else 1"`
}

type pairsKeys struct {
	Clean Path   `key:"clean,required" doc:"folder of images, or npy"`
	Moved Path   `key:"moved,required" doc:"their partners"`
	By    string `key:"by" enum:"name|row" doc:"how partners are found; by name in folders, by row in arrays"`
}

type shapesKeys struct {
	N        int       `key:"n" default:"1000" min:"1" doc:"samples"`
	Size     int       `key:"size" default:"32" min:"4" max:"4096" doc:"side in pixels"`
	Channels int       `key:"channels" default:"3" min:"1" max:"3" doc:"3: colour, 1: white on black"`
	Seed     uint64    `key:"seed" default:"1" doc:"of every draw"`
	Kinds    []string  `key:"kinds" doc:"figures; all where not given"`
	Scale    []float64 `key:"scale" doc:"[low, high]: diameter in sides"`
	Rotation []float64 `key:"rotation" doc:"[low, high]: degrees"`
	X        []float64 `key:"x" doc:"[low, high]: to the right, in sides"`
	Y        []float64 `key:"y" doc:"[low, high]: down, in sides"`
	Hue      []float64 `key:"hue" doc:"[low, high]: degrees"`
}

type gratingsKeys struct {
	Size         int       `key:"size" default:"32" min:"4" max:"4096" doc:"side in pixels"`
	Channels     int       `key:"channels" default:"3" min:"1" max:"3" doc:"3 or 1"`
	Frequencies  []float64 `key:"frequencies" doc:"radians per unit of length, the side being pi; 2, 4, 6, 8"`
	Orientations []float64 `key:"orientations" doc:"degrees; 21 of them"`
	Phases       []float64 `key:"phases" doc:"units of length, the side being pi; 21 of them"`
}

type splitKeys struct {
	Part     int     `key:"part" min:"1" doc:"which part, from 1"`
	Of       int     `key:"of" min:"2" doc:"of so many equal parts"`
	Fraction float64 `key:"fraction" min:"0" max:"1" doc:"in place of part and of: this share of the samples"`
	Seed     uint64  `key:"seed" default:"1" doc:"of the shuffle: one seed gives parts that do not overlap"`
}

// check finds keys that do not go together.
func (d Data) check() error {
	if d.Stratified && d.Limit == 0 {
		return d.node.Get("stratified").Errorf("stratified wants a limit")
	}
	if d.Corrupt != nil && d.Pairs != nil {
		return d.node.Get("corrupt").Errorf("ready-made pairs cannot be corrupted: one half would not match the other")
	}
	if k := d.Split; k != nil {
		at := d.node.Get("split")
		parts, fraction := k.Part > 0 || k.Of > 0, k.Fraction > 0
		switch {
		case parts == fraction:
			return at.Errorf("a split is {part: 1, of: 5}, or {fraction: 0.2}")
		case parts && (k.Part == 0 || k.Of == 0 || k.Part > k.Of):
			return at.Errorf("part %d of %d is no part: write {part: 1, of: 5}, say", k.Part, k.Of)
		}
	}
	return nil
}
