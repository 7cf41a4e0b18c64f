package benchmark

import "slices"

// commonKinds are the corruptions of Hendrycks and Dietterich 2019, with the mean errors of AlexNet
// that they publish (of the extra ones, with three digits).
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
		{Name: "speckle-noise", Group: "extra", Reference: 0.845, Extra: true},
		{Name: "gaussian-blur", Group: "extra", Reference: 0.787, Extra: true},
		{Name: "spatter", Group: "extra", Reference: 0.718, Extra: true},
		{Name: "saturate", Group: "extra", Reference: 0.658, Extra: true},
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
	accuracy := func(b Benchmark) Benchmark {
		b.Measure, b.Statistic = "accuracy", "clean"
		return b
	}
	stacked := func(name, title string) Benchmark {
		return accuracy(Benchmark{Name: name, Title: title, Published: title, Source: "Hendrycks and Dietterich 2019", Layout: Stacked, Kinds: without(commonKinds(), true), Severities: five, Own: true})
	}
	single := func(name, title, published, source string, present, numbered bool) Benchmark {
		return accuracy(Benchmark{Name: name, Title: title, Published: published, Source: source, Layout: Single, Kinds: named(Shifted), Severities: []int{0}, Present: present, Numbered: numbered})
	}
	return []Benchmark{
		accuracy(Benchmark{Name: "imagenet-c", Title: "ImageNet-C", Published: "ImageNet-C", Source: "Hendrycks and Dietterich 2019", Kinds: commonKinds(), Severities: five,
			Folders: []string{"GROUP/KIND/SEVERITY", "KIND/SEVERITY"}, Ready: true, Own: true, Reference: "AlexNet", CleanReference: 0.43478}),
		accuracy(Benchmark{Name: "imagenet-3dcc", Title: "ImageNet-3DCC", Published: "ImageNet-3DCC", Source: "Kar et al. 2022", Severities: five,
			Kinds:   named("near-focus", "far-focus", "bit-error", "color-quant", "flash", "fog-3d", "h265-abr", "h265-crf", "iso-noise", "low-light", "xy-motion-blur", "z-motion-blur"),
			Folders: []string{"KIND/SEVERITY"}, Ready: true}),
		single("imagenet-a", "ImageNet-A", "imagenet-a", "Hendrycks et al. 2021", true, false),
		single("imagenet-r", "ImageNet-R", "imagenet-r", "Hendrycks et al. 2021", true, false),
		single("imagenet-sketch", "ImageNet-Sketch", "sketch", "Wang et al. 2019", false, false),
		single("imagenet-v2", "ImageNetV2", "imagenetv2-matched-frequency-format-val", "Recht et al. 2019", false, true),
		stacked("cifar-10-c", "CIFAR-10-C"),
		stacked("cifar-100-c", "CIFAR-100-C"),
		{Name: "coco-c", Title: "COCO-C", Source: "Michaelis et al. 2019", Layout: COCO, Kinds: without(commonKinds(), false), Severities: five, Own: true,
			Measure: "dense-accuracy", Statistic: "clean-map"},
	}
}
