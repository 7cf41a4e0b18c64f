package main

import (
	"cmp"
	"fmt"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

// A finding is a statement of the paper (Nanda et al. 2022): that the first of two scores is
// larger. Their difference is computed for each of several independent pairs of networks; the i-th
// pair of one side, in the order of the seeds, is compared with the i-th of the other.
type finding struct {
	item, text   string // the table or figure of the paper, and what it says
	table        string // the experiment with the scores
	larger, less side
	otherTable   string // the experiment of less, if that is another; ""
}

// A side is the mean of a statistic over some groups of a table. A group is a row of the table: the
// kinds of the two networks, and the layer.
type side struct {
	groups []group // their depth is not set: kinds and layer identify them
	of     column  // the statistic
}

// at returns a side of one group, at a layer.
func at(layer string, of column, reference, other string) side {
	return mean(of, group{reference: reference, other: other, layer: layer})
}

// mean returns the side of several groups.
func mean(of column, groups ...group) side { return side{groups, of} }

// penultimate is the name of the penultimate layer of the ResNets and VGGs of package train.
const penultimate = "Flatten"

// last returns the group of two kinds at the penultimate layer.
func last(reference, other string) group {
	return group{reference: reference, other: other, layer: penultimate}
}

// one returns the side of one group at the penultimate layer.
func one(of column, reference, other string) side { return mean(of, last(reference, other)) }

// both returns the mean over both directions (a or b as reference), at the penultimate layer.
func both(of column, a, b string) side { return mean(of, last(a, b), last(b, a)) }

// findings lists the statements that the runs can confirm. Besides plain and AT, TRADES and MART
// are two other defences against adversarial images, 1 step is adversarial training with one step
// of the attack, shapes are networks of another data set, and a number such as 1500 is that of the
// training images. For adversarial STIR (worst) the search for x' also maximises the distance of x
// and x' in m2. Controversial images are the x' of such a search that starts from x; change is
// their distance from x. agree is the fraction of the x' on which both networks predict the same
// class.
var findings = []finding{
	{"Table 1", "plain, two seeds: CKA is larger than STIR", "stir-seeds", one(cka, "plain", "plain"), one(stir, "plain", "plain"), ""},
	{"Table 1", "two seeds: STIR is larger with AT than plain", "stir-seeds", one(stir, "at", "at"), one(stir, "plain", "plain"), ""},
	{"Table 1", "the same by debiased CKA", "stir-seeds", one(debiased, "at", "at"), one(debiased, "plain", "plain"), ""},
	{"Table 1", "two seeds: the agreement is larger with AT than plain", "stir-seeds", one(agree, "at", "at"), one(agree, "plain", "plain"), ""},
	{"Table 1", "STIR(plain given AT) is larger than STIR(AT given plain)", "stir-seeds", one(stir, "at", "plain"), one(stir, "plain", "at"), ""},
	{"Table 1", "plain, two seeds: STIR is larger than adversarial STIR", "stir-seeds", one(stir, "plain", "plain"), one(worst, "plain", "plain"), "stir-adversarial"},
	{"Table 1", "AT, two seeds: STIR is larger than adversarial STIR", "stir-seeds", one(stir, "at", "at"), one(worst, "at", "at"), "stir-adversarial"},
	{"Table 2", "STIR(1 step given AT) is larger than STIR(AT given 1 step)", "stir-iterations", one(stir, "at", "one"), one(stir, "one", "at"), ""},
	{"Table 2", "STIR(plain given 1 step) is larger than STIR(1 step given plain)", "stir-iterations", one(stir, "one", "plain"), one(stir, "plain", "one"), ""},
	{"Table 3", "controversial images of two seeds are farther from x with AT than plain", "stir-adversarial", one(change, "at", "at"), one(change, "plain", "plain"), ""},
	{"Figure 1", "plain: STIR of 1500 and 3000 images is larger than of 750 and 1500", "stir-updates", both(stir, "plain-1500", "plain-3000"), both(stir, "plain-750", "plain-1500"), ""},
	{"Figure 1", "AT: the same", "stir-updates", both(stir, "at-1500", "at-3000"), both(stir, "at-750", "at-1500"), ""},
	{"Figure 2", "plain: STIR of the first ReLU is larger than of the penultimate layer", "stir-layers", at("Relu", stir, "plain", "plain"), one(stir, "plain", "plain"), ""},
	{"Figure 2", "STIR of the end of stage 4 is larger with AT than plain", "stir-layers", at("stage4/block2/Relu_1", stir, "at", "at"), at("stage4/block2/Relu_1", stir, "plain", "plain"), ""},
	{"Figure 2", "STIR of the penultimate layer is larger with AT than plain", "stir-layers", one(stir, "at", "at"), one(stir, "plain", "plain"), ""},
	{"Figure 2", "VGG-16, plain: STIR of the first ReLU is larger than of the penultimate layer", "stir-layers-vgg16", at("stage1/conv1/Relu", stir, "plain", "plain"), one(stir, "plain", "plain"), ""},
	{"Figure 2", "VGG-16: STIR of the penultimate layer is larger with AT than plain", "stir-layers-vgg16", one(stir, "at", "at"), one(stir, "plain", "plain"), ""},
	{"Figure 3", "plain: STIR of the first ReLU is larger than of the penultimate layer", "stir-datasets", at("Relu", stir, "plain", "shapes-plain"), one(stir, "plain", "shapes-plain"), ""},
	{"Figure 3", "STIR of the penultimate layer is larger with AT than plain", "stir-datasets", one(stir, "at", "shapes-at"), one(stir, "plain", "shapes-plain"), ""},
	{"Figure 4", "plain: STIR of two ResNets is larger than of two VGGs", "stir-architectures", one(stir, "resnet-plain", "resnet-plain"), one(stir, "vgg-plain", "vgg-plain"), ""},
	{"Figure 4", "AT: the same", "stir-architectures", one(stir, "resnet-at", "resnet-at"), one(stir, "vgg-at", "vgg-at"), ""},
	{"Figure 4", "STIR of a ResNet and a VGG is larger with AT than plain", "stir-architectures", both(stir, "resnet-at", "vgg-at"), both(stir, "resnet-plain", "vgg-plain"), ""},
	{"Figure 4", "two ResNets: STIR of one kind of training is larger than of plain and AT", "stir-architectures", mean(stir, last("resnet-plain", "resnet-plain"), last("resnet-at", "resnet-at")), both(stir, "resnet-plain", "resnet-at"), ""},
	{"Figure 5", "STIR of AT and AT is larger than of AT and TRADES", "stir-layers", one(stir, "at", "at"), one(stir, "at", "trades"), "stir-defences"},
	{"Figure 5", "STIR of AT and AT is larger than of AT and MART", "stir-layers", one(stir, "at", "at"), one(stir, "at", "mart"), "stir-defences"},
	{"Figure 5", "STIR of AT and AT is larger than of TRADES and MART", "stir-layers", one(stir, "at", "at"), one(stir, "trades", "mart"), "stir-defences"},
	{"Figure 6", "ResNet-34, plain: STIR of the first ReLU is larger than of the penultimate layer", "stir-layers-resnet34", at("Relu", stir, "plain", "plain"), one(stir, "plain", "plain"), ""},
	{"Figure 6", "ResNet-34: STIR of the penultimate layer is larger with AT than plain", "stir-layers-resnet34", one(stir, "at", "at"), one(stir, "plain", "plain"), ""},
	{"Figure 6", "VGG-19, plain: STIR of the first ReLU is larger than of the penultimate layer", "stir-layers-vgg19", at("stage1/conv1/Relu", stir, "plain", "plain"), one(stir, "plain", "plain"), ""},
	{"Figure 6", "VGG-19: STIR of the penultimate layer is larger with AT than plain", "stir-layers-vgg19", one(stir, "at", "at"), one(stir, "plain", "plain"), ""},
	{"Figure 7", "VGG-16, plain: STIR of the first ReLU is larger than of the penultimate layer", "stir-datasets-vgg16", at("stage1/conv1/Relu", stir, "plain", "shapes-plain"), one(stir, "plain", "shapes-plain"), ""},
	{"Figure 7", "VGG-16: STIR of the penultimate layer is larger with AT than plain", "stir-datasets-vgg16", one(stir, "at", "shapes-at"), one(stir, "plain", "shapes-plain"), ""},
	{"Figure 8", "plain ResNet and VGG: CKA is larger than STIR", "stir-architectures", both(cka, "resnet-plain", "vgg-plain"), both(stir, "resnet-plain", "vgg-plain"), ""},
	{"Figure 9", "STIR of AT with TRADES and with MART is larger for VGG-16 than for ResNet-18", "stir-defences-vgg16", mean(stir, last("at", "trades"), last("at", "mart")), mean(stir, last("at", "trades"), last("at", "mart")), "stir-defences"},
	{"Figure 9", "VGG-16: STIR of AT and AT is larger than of AT and MART", "stir-layers-vgg16", one(stir, "at", "at"), one(stir, "at", "mart"), "stir-defences-vgg16"},
}

// maxMissed is the largest fraction of images that an inversion, the search for x', may miss. The
// scores of one that misses more do not have the meaning of STIR: by equation 2, x and x' have the
// same representation in the reference network.
const maxMissed = 0.1

// findingRows returns the differences of the findings, with a verdict: seen if the interval is
// above 0, not seen if it is below 0, and open otherwise, or if an inversion missed more than
// maxMissed. Findings without runs have their stored rows, if any.
func findingRows(tables map[string]groups, stored [][]string) [][]string {
	out := [][]string{{"item", "finding", "statistic", "value", "low", "high"}}
	for _, f := range findings {
		other := cmp.Or(f.otherTable, f.table)
		a, b := f.larger.values(tables[f.table]), f.less.values(tables[other])
		if len(a) == 0 || len(a) != len(b) {
			out = append(out, beginning(stored, f.item, f.text)...)
			continue
		}
		for i := range a {
			a[i] -= b[i]
		}
		value, low, high := tablefile.Interval(a)
		verdict := "open"
		switch {
		case f.larger.missed(tables[f.table]) > maxMissed || f.less.missed(tables[other]) > maxMissed:
			verdict = "open: missed"
		case low > 0:
			verdict = "seen"
		case high < 0:
			verdict = "not seen"
		}
		cells := tablefile.Cells("%.3f", value, low, high)
		cells[0] = fmt.Sprintf("%+.3f", value)
		out = append(out,
			append([]string{f.item, f.text, "difference"}, cells...),
			[]string{f.item, f.text, "verdict", verdict, "", ""})
	}
	return out
}

// values returns the mean over the groups for each pair of networks, nil if a run lacks a group.
func (s side) values(g groups) []float64 {
	var out []float64
	for _, want := range s.groups {
		found := false
		for k, p := range g {
			if k.reference != want.reference || k.other != want.other || k.layer != want.layer {
				continue
			}
			v := p.values(s.of)
			if out == nil {
				out = make([]float64, len(v))
			}
			if len(v) != len(out) {
				return nil
			}
			for i := range v {
				out[i] += v[i] / float64(len(s.groups))
			}
			found = true
		}
		if !found {
			return nil
		}
	}
	return out
}

// missed returns the largest mean fraction over the groups of the images that the inversion of the
// statistic missed.
func (s side) missed(g groups) float64 {
	if s.of.statistic == cka.statistic {
		return 0
	}
	of := missed
	switch {
	case s.of.statistic == worst.statistic:
		of = worstMissed
	case s.of.variant == controversialMissed.variant: // of controversial images
		of = controversialMissed
	}
	var most float64
	for _, k := range s.groups {
		mean, _, _ := tablefile.Interval(side{[]group{k}, of}.values(g))
		most = max(most, mean)
	}
	return most
}
