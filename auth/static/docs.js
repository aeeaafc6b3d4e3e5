// The system's fonts, because the content security policy allows no others.
const typography = { fontFamily: "system-ui, sans-serif", headings: { fontFamily: "system-ui, sans-serif" } };
const options = { theme: { typography }, expandResponses: "", sortTagsAlphabetically: false };
Redoc.init("openapi.yaml", options, document.getElementById("docs"));
