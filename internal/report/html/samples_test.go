package html

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// withSamples adds to a generated run of f the sample sheets of two transformations: what they do
// to each of 12 samples of four classes, out of 500. The first transformation, quarter, has three
// values. FakeRun.SampleSheet makes them up: sample i is of class i mod 4, and at the last value
// model m (from 0) classifies the samples from 6 + 2m on wrongly. Of the 500 samples, 400 are right
// as they are. images says whether the sheets have images of the samples.
func withSamples(run Run, f reporttest.FakeRun, images bool) Run {
	for i, values := range [][]string{{"90", "180", "270"}, nil} {
		s := report.SampleSheet{SampleSheet: f.SampleSheet(i, values...)}
		if images {
			s.Tile = &scores.SheetTile{Width: 32, Height: 32, Right: 32, Down: 32}
			s.Type, s.Image = "image/png", reporttest.Checkerboard(32*(1+len(s.Parameters)), 32*len(s.Samples))
		}
		run.SampleSheets = append(run.SampleSheets, s)
	}
	return run
}

// threeModels generates the rows of studyOfThree, a run that has contact sheets (images that show
// samples side by side) too.
var threeModels = reporttest.FakeRun{Models: 3, Layers: 20, Transforms: 4}

// samplesSection is a JavaScript expression for the section of samples. A sample is shown as a
// card, with its image and prediction before and after the transformation.
const samplesSection = `document.getElementById("samples")`

// press chooses an option of a control, which is a drop-down list or a row of buttons.
func press(name, value string) chromedp.Action[chromedp.Void] {
	return script(fmt.Sprintf(`{ const s = document.querySelector("select[name=%[1]s]");
		if (s) { s.value = %[2]q; s.dispatchEvent(new Event("change")) } else document.querySelector('#%[1]s input[value="%[2]s"]').click() }`, name, value))
}

// TestFailuresFromTheFirstScreen follows the link (.go) on the first screen to images that fail:
// those that a model classifies correctly as they are, and wrongly when they are transformed.
// complete is the condition that all charts are drawn, and quiet checks that the browser reported
// no problem and that the page requested no other file.
func TestFailuresFromTheFirstScreen(t *testing.T) {
	t.Parallel()
	v := openAt(t, withSamples(studyOfThree(), threeModels, true), 1440, 900, "")
	if bottom := evaluate[float64](t, v, `document.querySelector(".go").getBoundingClientRect().bottom`); bottom > 900 {
		t.Errorf("the link to images that fail ends at %.0f pixels, below the first screen", bottom)
	}
	if got, want := v.texts(t, ".go"), []string{"Show images that fail under quarter"}; !slices.Equal(got, want) {
		t.Fatalf("the link says %q, want %q", got, want)
	}
	v.do(t, chromedp.SendKeys(chromedp.CSS(".go"), "\r"), until(`document.activeElement.id === "samples-title"`), until(complete))
	// The value with the largest change is the last one, where the first model fails on the samples
	// 6 to 11. Each of their cards has two images.
	if n := evaluate[int](t, v, samplesSection+`.querySelectorAll(".card").length`); n != 6 {
		t.Errorf("%d cards, want 6", n)
	}
	if got := evaluate[string](t, v, samplesSection+`.querySelector(".card .wrong").title`); got != "predicted airplane with 94 %, wrong" {
		t.Errorf("the most confident error is %q, want %q", got, "predicted airplane with 94 %, wrong")
	}
	if got, want := v.texts(t, "#samples .reading")[0], "Under quarter 270, resnet20 gets 200 of 400 samples (50 %) wrong that it gets right as they are."; !strings.HasPrefix(got, want) {
		t.Errorf("the text is %q, want %q at its start", got, want)
	}
	v.do(t, until(samplesSection+`.querySelectorAll(".card img[src^='data:image/png']").length === 12`))
	if alt, want := evaluate[string](t, v, samplesSection+`.querySelectorAll(".card img")[1].alt`), ", under quarter 270"; !strings.HasSuffix(alt, want) {
		t.Errorf("the alternative text is %q, want %q at its end", alt, want)
	}
	v.quiet(t)
}

// TestSounds plays the clips of a sample of sound, one at a time; a second click ends it.
func TestSounds(t *testing.T) {
	t.Parallel()
	run := withSamples(soundRun(), reporttest.FakeRun{Models: 2, Layers: 4, Transforms: 2}, false)
	for i := range run.SampleSheets {
		s := &run.SampleSheets[i]
		const rate, length = 8000, 4000
		s.Sound = &scores.SheetSound{Rate: rate, Length: length}
		for line := range s.Samples[:6] {
			s.Sound.Lines = append(s.Sound.Lines, line)
		}
		var wave bytes.Buffer
		if err := audio.WriteWAV16(&wave, audio.Clip{Rate: rate, Wave: make([]float32, length*len(s.Sound.Lines)*(1+len(s.Parameters)))}); err != nil {
			t.Fatal(err)
		}
		s.Type, s.Image = "audio/wav", wave.Bytes()
	}
	v := openAt(t, run, 1440, 900, "#samples.show=all")
	const buttons = samplesSection + `.querySelectorAll(".card .play")`
	if n := evaluate[int](t, v, buttons+".length"); n != 12 {
		t.Errorf("%d buttons for the six samples with clips, want 12", n)
	}
	if label := evaluate[string](t, v, buttons+`[1].getAttribute("aria-label")`); !strings.HasPrefix(label, "Play ") || !strings.Contains(label, ", under ") {
		t.Errorf("a button says %q", label)
	}
	pressed := func(want string) string {
		return `[...` + buttons + `].map((b, i) => b.getAttribute("aria-pressed") === "true" ? i : "").join("") === "` + want + `"`
	}
	click := func(i int) chromedp.Action[chromedp.Void] { return script(fmt.Sprintf(buttons+`[%d].click()`, i)) }
	v.do(t, click(0), until(pressed("0")), click(3), until(pressed("3")), click(3), until(pressed("")))
	v.quiet(t)
}

// TestSamplesOfAClaim follows the link of a policy's claim to the samples that the judged model loses.
func TestSamplesOfAClaim(t *testing.T) {
	t.Parallel()
	run := withSamples(studyOfThree(), threeModels, true)
	claim := policy.ClaimSummary{State: policy.Undecided, Text: "loss", Data: run.SampleSheets[0].Data, Transform: "quarter", Parameter: "180", Where: "quarter=180", Evidence: "0.01"}
	clean := policy.ClaimSummary{State: policy.Undecided, Text: "loss", Data: claim.Data, Where: "clean", Evidence: "0.01"}
	run.Verdict = &policy.Summary{Use: "street", Reference: "resnet56", Models: []policy.ModelSummary{{Model: "resnet20", State: policy.Undecided, Claims: []policy.ClaimSummary{claim, clean}}}}
	v := openAt(t, run, 1440, 900, "")
	if links := v.texts(t, ".verdict .deciding a"); !slices.Equal(links, []string{"quarter=180"}) {
		t.Fatalf("the links of the claims are %q, want that of the transformed samples", links)
	}
	v.do(t, script(`document.querySelector(".verdict .deciding a").click()`),
		until(samplesSection+`.querySelector(".reading").textContent.startsWith("Under quarter 180, resnet56 is right and resnet20 wrong")`))
	v.quiet(t)
}

// TestSampleChoices chooses the lists of samples, another model, a class and filters. The lists are
// the samples that change "most" and "least", and the "parts": those that one model classifies
// correctly and another does not.
func TestSampleChoices(t *testing.T) {
	t.Parallel()
	v := openAt(t, withSamples(studyOfThree(), threeModels, true), 1440, 900, "")
	cards := samplesSection + `.querySelectorAll(".card").length`
	v.do(t, press("samples", "most"), until(`location.hash.includes("samples.show=most") && `+cards+` === 6`))
	v.do(t, press("samples-class", "cat"), until(cards+" === 2")) // samples 11 and 7
	v.do(t, press("samples-class", ""), press("samples", "least"), until(samplesSection+`.querySelector(".card .say")?.textContent === "effective invariance 0.900"`))
	v.do(t, press("samples-model", "resnet56"), press("samples", "parts"), until(cards+" === 2"))
	if got := v.texts(t, "#samples .reading")[0]; got != "Under quarter 270, resnet56 is right and resnet20 wrong on 37 of 500 samples (7 %). The predictions beside the samples are those of resnet20." {
		t.Errorf("the text is %q, want %q", got, "Under quarter 270, resnet56 is right and resnet20 wrong on 37 of 500 samples (7 %). The predictions beside the samples are those of resnet20.")
	}
	v.do(t, script(`location.hash = "#hide.transform=quarter"`), until(samplesSection+`.querySelectorAll("select[name=samples-transform]").length === 0 && `+complete))
	if got, want := v.texts(t, "#samples figcaption span:first-child")[0], "under gray"; !strings.HasSuffix(got, want) {
		t.Errorf("the title is %q, want %q at its end", got, want)
	}
	v.do(t, script(`location.hash = "#hide.model=resnet20&hide.model=resnet56&hide.model=vit-tiny"`), until(cards+" === 0"))
	v.quiet(t)
}

// TestBrowsingSamples shows all samples of a sheet, ten at first and then the others, filters them
// by their predictions, and opens the table of them.
func TestBrowsingSamples(t *testing.T) {
	t.Parallel()
	v := openAt(t, withSamples(studyOfThree(), threeModels, true), 1440, 900, "#samples.show=all")
	cards := samplesSection + `.querySelectorAll(".card").length`
	more := samplesSection + `.querySelector(".more")`
	if got := v.texts(t, "#samples .more"); evaluate[int](t, v, cards) != 10 || !slices.Equal(got, []string{"Show 2 of 2 more"}) {
		t.Fatalf("%d cards and the button %q, want 10 of 12 and a button for 2", evaluate[int](t, v, cards), got)
	}
	if got, want := v.texts(t, "#samples .reading")[0], "The 12 samples of 500 that this report shows under quarter"; !strings.HasPrefix(got, want) {
		t.Errorf("the text is %q, want %q at its start", got, want)
	}
	v.do(t, script(samplesSection+`.querySelector(".actions button[aria-expanded]").click()`), until(samplesSection+`.querySelectorAll(".data tbody tr").length === 12`))
	v.do(t, chromedp.SendKeys(chromedp.CSS("#samples .cards + .more"), "\r"), until(cards+" === 12"))
	if !evaluate[bool](t, v, more+`.hidden && document.activeElement === `+samplesSection+`.querySelectorAll(".card")[10]`) {
		t.Error("the first of the new cards does not have the focus, or the button is still shown")
	}
	for _, c := range []struct {
		outcome string
		wrong   int
	}{{"right", 0}, {"changed", 6}, {"wrong", 6}} {
		v.do(t, press("samples-outcome", c.outcome), until(cards+" === 6"))
		if n := evaluate[int](t, v, samplesSection+`.querySelectorAll(".card .pair > div:last-child .wrong").length`); n != c.wrong {
			t.Errorf("%s: %d cards have a wrong prediction, want %d", c.outcome, n, c.wrong)
		}
	}
	v.do(t, press("samples-class", "cat"), until(cards+" === 2"), // samples 7 and 11
		script(`location.hash = "#samples.show=all&samples.outcome=__proto__"`), until(cards+" === 10")) // an unknown filter is ignored
	v.quiet(t)
}

// TestParameterSlider moves the slider of the parameter, an angle, by the keyboard. Images, counts
// and the marker in charts over the parameter follow. eiSection is the section of effective
// invariance: do predictions stay the same?
func TestParameterSlider(t *testing.T) {
	t.Parallel()
	v := openAt(t, withSamples(studyOfThree(), threeModels, true), 1440, 900, "#effective-invariance.chart=parameter")
	slider := `document.querySelector("#samples input[type=range]")`
	markers := `[...` + eiSection + `.querySelectorAll("figure:first-child .mark-rule.role-mark line")].filter(l => l.getAttribute("opacity") !== "0").length`
	if n := evaluate[int](t, v, markers); n != 0 {
		t.Errorf("%d markers before a value is chosen, want none", n)
	}
	if got := evaluate[string](t, v, slider+".value + ' ' + "+slider+".getAttribute('aria-valuetext')"); got != "2 270" {
		t.Errorf("the index and text of the slider are %q, want %q", got, "2 270")
	}
	image := `document.querySelector("#samples .card img:last-of-type").src`
	v.do(t, until(image+" !== ''"), chromedp.SendKeys(chromedp.CSS("#samples input[type=range]"), kb.ArrowLeft), until(`location.hash.includes("value.quarter=180")`), until(markers+" === 1"))
	if got := v.texts(t, "#samples .cards .none"); len(got) != 1 { // at 180 none of the shown samples fails
		t.Errorf("the cards are %q, want none and a text that says so", v.texts(t, "#samples .card"))
	}
	if got, want := v.texts(t, "#samples .reading")[0], "160 of 400"; !strings.Contains(got, want) {
		t.Errorf("the text is %q, want %q in it", got, want)
	}
	if focused := evaluate[bool](t, v, "document.activeElement === "+slider); !focused {
		t.Error("the slider has lost the focus")
	}
	position := eiSection + `.querySelector("figure:first-child .mark-rule.role-mark line").getAttribute("transform")`
	first := evaluate[string](t, v, position)
	v.do(t, chromedp.SendKeys(chromedp.CSS("#samples input[type=range]"), kb.ArrowLeft), until(fmt.Sprintf("%s !== %q", position, first)))
	v.quiet(t)
}

// TestClasses checks the heat map of the loss of accuracy by class and transformation, and the
// chart of predictions for one class.
func TestClasses(t *testing.T) {
	t.Parallel()
	v := openAt(t, withSamples(studyOfThree(), threeModels, false), 1440, 900, "")
	const heat, bars = "#classes figure:first-child", "#classes figure:last-child"
	if n := evaluate[int](t, v, `document.querySelectorAll("#classes figure").length`); n != 0 {
		t.Errorf("%d charts of classes before the section is unfolded, want none", n)
	}
	v.do(t, script(`document.querySelector("#classes summary").click()`), until(`document.querySelectorAll("#classes figure").length === 2 && `+complete))
	// Of each class, 100 of 125 samples are right as they are. The class cat loses most.
	if got := v.texts(t, heat+" .role-axis-label:first-of-type, "+heat+" .mark-text.role-mark text"); !slices.Contains(got, "0.60") {
		t.Errorf("the labels and tiles are %q, want a loss of 0.60 among them", got)
	}
	if got, want := v.texts(t, "#classes .reading")[0], "For resnet20, cat suffers most, under quarter 270: its accuracy is 0.800 as it is and 0.200 transformed (125 samples)."; !strings.HasPrefix(got, want) {
		t.Errorf("the text is %q, want %q at its start", got, want)
	}
	if got := v.texts(t, bars+" figcaption span:first-child")[0]; got != "Predictions for cat under quarter 270, resnet20" {
		t.Errorf("the chart of predictions has the title %q, want %q", got, "Predictions for cat under quarter 270, resnet20")
	}
	v.do(t, press("classes-class", "bird"), until(complete), script(`document.querySelector("`+bars+` button[aria-expanded]").click()`))
	if got, want := strings.Join(v.texts(t, bars+" tbody tr"), ";"), "catas it is25;catunder quarter 27085;birdas it is100;birdunder quarter 27040"; got != want {
		t.Errorf("the table of data has the rows %q, want %q", got, want)
	}
	// share is the statistic effective invariance.
	v.do(t, press("classes", "share"), until(`document.querySelector("#classes .reading").textContent.includes("effective invariance is 0.400")`), until(complete))
	// drop is the loss of accuracy, the default. The keyboard stays on the control, which is drawn
	// anew.
	v.do(t, press("classes", "drop"), until(`document.querySelector("#classes .reading").textContent.includes("its accuracy is")`), until(complete))
	if got := evaluate[string](t, v, `document.activeElement.value ?? ""`); got != "drop" {
		t.Errorf("the focus is on %q after the loss of accuracy was chosen, want drop", got)
	}
	v.quiet(t)
}

// TestProjections unfolds the section "Representation space": the representations of samples at a
// layer, projected onto two principal components. It chooses another layer and another value.
func TestProjections(t *testing.T) {
	t.Parallel()
	v := openAt(t, withSamples(studyOfThree(), threeModels, false), 1440, 900, "")
	const space = `document.getElementById("space")`
	if n := evaluate[int](t, v, space+`.querySelectorAll("svg.marks").length`); n != 0 {
		t.Errorf("%d charts before the section is unfolded, want none", n)
	}
	points := space + `.querySelectorAll(".mark-symbol.role-mark path").length`
	// 12 samples, each as it is and transformed.
	v.do(t, script(space+`.querySelector("summary").click()`), until(points+" === 24 && "+complete))
	title := func() string { return v.texts(t, "#space figcaption span:first-child")[0] }
	if got := title(); got != "resnet20, /layer1/layer1.0/relu2/Relu: clean and under quarter 270" {
		t.Errorf("the title is %q, want %q", got, "resnet20, /layer1/layer1.0/relu2/Relu: clean and under quarter 270")
	}
	v.do(t, press("space-layer", "/layer1/layer1.0/relu1/Relu_output_0"), until(complete), chromedp.SendKeys(chromedp.CSS("#space input[type=range]"), kb.ArrowLeft), until(complete))
	if got := title(); got != "resnet20, /layer1/layer1.0/relu1/Relu: clean and under quarter 180" {
		t.Errorf("the title is %q, want %q", got, "resnet20, /layer1/layer1.0/relu1/Relu: clean and under quarter 180")
	}
	v.do(t, script(space+`.querySelector("button[aria-expanded]").click()`))
	if rows := v.texts(t, "#space tbody tr"); len(rows) == 0 || !strings.HasSuffix(rows[1], "airplaneunder quarter 1800.0002.000") {
		t.Errorf("the table of data has the rows %q, want the second of airplane under quarter 180 at 0.000, 2.000", rows)
	}
	v.quiet(t)
}

// TestSamplesAreSaved saves the cards as SVG and as PNG, with their images.
func TestSamplesAreSaved(t *testing.T) {
	t.Parallel()
	run := Run{}
	run.Rows, run.Record = attackedRun() // its names are hostile, such as HTML elements
	v := openAt(t, withSamples(run, attacked, true), 1280, 900, "")
	v.do(t,
		until(samplesSection+`.querySelectorAll(".card").length > 0`),
		// What would be downloaded is kept in window.saved.
		script(`window.saved = []; HTMLAnchorElement.prototype.click = () => {}; URL.createObjectURL = b => { b.text().then(t => window.saved.push(t)); return "#" }`))
	for i := range 2 {
		v.do(t, script(fmt.Sprintf(`%s.querySelectorAll(".actions button")[%d].click()`, samplesSection, i)), until(fmt.Sprintf("window.saved.length === %d", i+1)))
	}
	var drawing struct {
		Images []struct {
			Href string `xml:"href,attr"`
		} `xml:"image"`
		Texts []string `xml:"text"`
		Other []struct {
			XMLName xml.Name
		} `xml:",any"`
	}
	text := evaluate[string](t, v, "window.saved[0]")
	if err := xml.Unmarshal([]byte(text), &drawing); err != nil || len(drawing.Images) != 12 || !strings.HasPrefix(drawing.Images[0].Href, "data:image/png;base64,") {
		t.Errorf("the SVG has %d images, want 12 PNG images; error %v", len(drawing.Images), err)
	}
	for _, o := range drawing.Other {
		if o.XMLName.Local != "rect" {
			t.Errorf("the SVG holds an element %s, want only images, texts and rectangles", o.XMLName.Local)
		}
	}
	if strings.Contains(text, "var(--") {
		t.Error("the SVG has CSS variables of the page")
	}
	if n := evaluate[int](t, v, "window.saved[1].length"); n < 1000 {
		t.Errorf("the PNG, read as text, has %d characters, want 1000 or more", n)
	}
}

// TestSamplesOnAPhone checks the sections in a window of the size of a phone's screen: with images,
// without, and with hostile names. It fails if axe-core, a checker of accessibility, finds serious
// issues; readAxe reads its source.
func TestSamplesOnAPhone(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	run := Run{}
	run.Rows, run.Record = attackedRun()
	for name, run := range map[string]Run{"with images": withSamples(studyOfThree(), threeModels, true), "without images": withSamples(studyOfThree(), threeModels, false),
		"hostile names": withSamples(run, attacked, true)} {
		t.Run(name, func(t *testing.T) {
			v := openAt(t, run, 390, 844, "")
			if width := evaluate[int](t, v, "document.documentElement.scrollWidth"); width > 390 {
				t.Errorf("the page is %d pixels wide, want at most the 390 of the window", width)
			}
			if n := evaluate[int](t, v, `document.querySelectorAll("script:not([type]), iframe, svg[onload], img[onerror], [onmouseover]").length`); n != 1 {
				t.Errorf("%d elements that can execute code, want 1, the script of the page", n)
			}
			v.do(t, script(string(axe)))
			v.accessible(t)
			v.quiet(t)
		})
	}
}

// TestWithoutSamples checks that a page has the sections of samples and classes only if the run has
// sample sheets.
func TestWithoutSamples(t *testing.T) {
	t.Parallel()
	rows, rec := threeModels.Rows()
	page := renderRun(t, Run{Rows: rows, Record: rec})
	if strings.Contains(page, `id="samples"`) || strings.Contains(page, `id="classes"`) {
		t.Error("a run without sample sheets has their sections")
	}
	if !strings.Contains(renderRun(t, withSamples(Run{Rows: rows, Record: rec}, threeModels, false)), `href="#classes"`) {
		t.Error("the table of contents lacks the classes")
	}
}
