package benchmark

import "slices"

// commonKinds are the corruptions of Hendrycks and Dietterich 2019, with the mean errors of AlexNet:
// those of issue 10 of github.com/hendrycks/robustness and, of the extra ones, of the program
// mce/eval_robustness.py of github.com/clovaai/assembled-cnn, with four digits.
func commonKinds() []Kind {
	return []Kind{
		{Name: "gaussian-noise", Group: "noise", Reference: 0.886428},
		{Name: "shot-noise", Group: "noise", Reference: 0.894468},
		{Name: "impulse-noise", Group: "noise", Reference: 0.922640},
		{Name: "defocus-blur", Group: "blur", Reference: 0.819880},
		{Name: "glass-blur", Group: "blur", Reference: 0.826268},
		{Name: "motion-blur", Group: "blur", Reference: 0.785948},
		{Name: "zoom-blur", Group: "blur", Reference: 0.798360},
		{Name: "snow", Group: "weather", Reference: 0.866816},
		{Name: "frost", Group: "weather", Reference: 0.826572},
		{Name: "fog", Group: "weather", Reference: 0.819324},
		{Name: "brightness", Group: "weather", Reference: 0.564592},
		{Name: "contrast", Group: "digital", Reference: 0.853204},
		{Name: "elastic-transform", Group: "digital", Reference: 0.646056},
		{Name: "pixelate", Group: "digital", Reference: 0.717840},
		{Name: "jpeg-compression", Group: "digital", Reference: 0.606500},
		{Name: "speckle-noise", Group: "extra", Reference: 0.8454, Extra: true},
		{Name: "gaussian-blur", Group: "extra", Reference: 0.7871, Extra: true},
		{Name: "spatter", Group: "extra", Reference: 0.7175, Extra: true},
		{Name: "saturate", Group: "extra", Reference: 0.6583, Extra: true},
	}
}

// perturbations are those of ImageNet-P, with the flip rates of AlexNet, as mce/eval_robustness.py of
// github.com/clovaai/assembled-cnn has them.
func perturbations() []Kind {
	return []Kind{
		{Name: "gaussian-noise", Group: "noise", Reference: 0.23653},
		{Name: "shot-noise", Group: "noise", Reference: 0.30062},
		{Name: "motion-blur", Group: "blur", Reference: 0.09297},
		{Name: "zoom-blur", Group: "blur", Reference: 0.05942},
		{Name: "snow", Group: "weather", Reference: 0.11928},
		{Name: "brightness", Group: "weather", Reference: 0.04889},
		{Name: "translate", Group: "digital", Reference: 0.11007},
		{Name: "rotate", Group: "digital", Reference: 0.13104},
		{Name: "tilt", Group: "digital", Reference: 0.07050},
		{Name: "scale", Group: "digital", Reference: 0.23531},
		{Name: "speckle-noise", Group: "validation", Reference: 0.18649, Extra: true},
		{Name: "gaussian-blur", Group: "validation", Reference: 0.02775, Extra: true},
		{Name: "spatter", Group: "validation", Reference: 0.05053, Extra: true},
		{Name: "shear", Group: "validation", Reference: 0.10658, Extra: true},
	}
}

// without returns kinds without references and, unless extra, without the extra ones.
func without(kinds []Kind, extra bool) []Kind {
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k.Extra && !extra })
	for i := range kinds {
		kinds[i].Reference = 0
	}
	return kinds
}

func named(names ...string) []Kind {
	var out []Kind
	for _, n := range names {
		out = append(out, Kind{Name: n})
	}
	return out
}

// All returns the benchmarks.
func All() []Benchmark {
	five := []int{1, 2, 3, 4, 5}
	accuracy := func(b Benchmark, classes, images int) Benchmark {
		b.Measure, b.Statistic = "accuracy", "clean"
		b.Classes, b.Images = classes, images
		if b.Chance == 0 {
			b.Chance = 1 / float64(classes)
		}
		return b
	}
	stacked := func(name, title string, classes int) Benchmark {
		return accuracy(Benchmark{Name: name, Title: title, Published: title, Source: "Hendrycks and Dietterich 2019", Layout: Stacked, Kinds: without(commonKinds(), true), Severities: five, Own: true}, classes, 10_000)
	}
	single := func(b Benchmark, classes, images int) Benchmark {
		b.Layout, b.Kinds, b.Severities = Single, named(Shifted), []int{0}
		return accuracy(b, classes, images)
	}
	return []Benchmark{
		accuracy(Benchmark{Name: "imagenet-c", Title: "ImageNet-C", Published: "ImageNet-C", Source: "Hendrycks and Dietterich 2019", Kinds: commonKinds(), Severities: five,
			Folders: []string{"GROUP/KIND/SEVERITY", "KIND/SEVERITY"}, Ready: true, Own: true, Reference: "AlexNet", CleanReference: 0.43478}, 1000, 50_000),
		{Name: "imagenet-p", Title: "ImageNet-P", Published: "ImageNet-P", Source: "Hendrycks and Dietterich 2019", Layout: Sequences, Kinds: perturbations(), Severities: []int{0},
			Folders: []string{"KIND", "GROUP/KIND"}, Ready: true, Reference: "AlexNet", Classes: 1000, Images: 50_000, Measure: "flip-rate", Statistic: "flip-rate"},
		accuracy(Benchmark{Name: "imagenet-3dcc", Title: "ImageNet-3DCC", Published: "ImageNet-3DCC", Source: "Kar et al. 2022", Severities: five,
			Kinds:   named("near-focus", "far-focus", "bit-error", "color-quant", "flash", "fog-3d", "h265-abr", "h265-crf", "iso-noise", "low-light", "xy-motion-blur", "z-motion-blur"),
			Folders: []string{"KIND/SEVERITY"}, Ready: true}, 1000, 50_000),
		single(Benchmark{Name: "imagenet-a", Title: "ImageNet-A", Published: "imagenet-a", Source: "Hendrycks et al. 2021", Present: true}, 200, 7_500),
		single(Benchmark{Name: "imagenet-r", Title: "ImageNet-R", Published: "imagenet-r", Source: "Hendrycks et al. 2021", Present: true}, 200, 30_000),
		single(Benchmark{Name: "imagenet-sketch", Title: "ImageNet-Sketch", Published: "sketch", Source: "Wang et al. 2019"}, 1000, 50_889),
		single(Benchmark{Name: "imagenet-v2", Title: "ImageNetV2", Published: "imagenetv2-matched-frequency-format-val", Source: "Recht et al. 2019", Numbered: true}, 1000, 10_000),
		single(Benchmark{Name: "objectnet", Title: "ObjectNet", Published: "objectnet-1.0", Source: "Barbu et al. 2019", Inside: "images", Border: 2, Groups: objectNetGroups,
			Chance: objectNetChance}, objectNetClasses, 18_574),
		accuracy(Benchmark{Name: "laion-c", Title: "LAION-C", Published: "LAION-C", Source: "Li et al. 2025", Severities: five, Ready: true, Groups: laionGroups, Mean: true,
			Kinds: named("geometric-shapes", "glitched", "luminance-checkerboard", "mosaic", "stickers", "vertical-lines"), Folders: []string{"KIND/intensity_level_SEVERITY"}}, 16, 0),
		stacked("cifar-10-c", "CIFAR-10-C", 10),
		stacked("cifar-100-c", "CIFAR-100-C", 100),
		{Name: "coco-c", Title: "COCO-C", Source: "Michaelis et al. 2019", Layout: COCO, Kinds: without(commonKinds(), false), Severities: five, Own: true, Images: 5_000,
			Measure: "dense-accuracy", Statistic: "clean-map"},
	}
}
