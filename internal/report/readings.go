package report

// A ReadingPart is a part of the sentence that explains how to read a chart. It is included if the
// chart has everything listed in When, separated by spaces: "lines" or "points", "branch", "null",
// "interval", "signed" (values of both signs) or "unsigned". {series} is replaced by what the
// colours show, {item} by "sample" or "unit", and {statistic} by the title of the statistic.
type ReadingPart struct {
	Text string `json:"text"`
	When string `json:"when,omitempty"`
}

var curveReading = []ReadingPart{
	{"A point for each layer", "points"}, {", a tick for what chance gives", "points null"},
	{"A line for each {series}", "lines"}, {", with its 95 % interval", "lines interval"}, {", dotted: what chance gives", "lines null"},
	{", thin: layers inside a branch, which a shortcut passes by", "lines branch"},
	{".", ""},
}

var (
	barReading = []ReadingPart{{"A bar for each {series}", ""}, {", with its 95 % interval", "interval"},
		{"; the tick alone is what chance gives", "null"}, {".", ""}}
	tileReading         = []ReadingPart{{"Orange is above 0, blue below.", "signed"}, {"The brighter, the higher.", "unsigned"}}
	distributionReading = []ReadingPart{{"How many {item}s have which value. One narrow peak: the {item}s are alike; two peaks: there are two kinds.", ""}}
	unitsReading        = []ReadingPart{{"A column for each layer, its units from the lowest to the highest; the brighter, the higher their {statistic}.", ""}}
	tuningReading       = []ReadingPart{{"A line for each of the best units; it fires where the points are large. " +
		"A broad top is invariance, a narrow one selectivity.", ""}}
)
