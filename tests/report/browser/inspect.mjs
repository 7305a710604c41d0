// Opens pages in Chromium and prints, as JSON, what a test wants to know of each.
// Usage: node inspect.mjs CHROMIUM PAGE... (with NGP_SCREENSHOTS=FOLDER it leaves pictures there, too)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const [chromium, ...pages] = process.argv.slice(2);
// Each width and each scheme once: colours don't move anything.
const views = [
  { width: 360, scheme: "light" },
  { width: 1600, scheme: "dark" },
];

// Runs within the page.
function measure() {
  const box = (element) => {
    const { width, height, left, right } = element.getBoundingClientRect();
    return { width, height, left, right };
  };
  const root = document.scrollingElement;
  const figures = [...document.querySelectorAll("figure")].map((figure) => {
    const shown = [...figure.querySelectorAll("svg")].filter((svg) => svg.checkVisibility());
    const caption = figure.querySelector("figcaption").textContent.trim();
    return { caption, drawings: shown.map(box), texts: shown.map((svg) => svg.textContent) };
  });
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  return {
    figures,
    scrollWidth: root.scrollWidth,
    clientWidth: root.clientWidth,
    twice: ids.filter((id, place) => ids.indexOf(id) !== place),
    broken: [...document.querySelectorAll("a[href^='#'], use")]
      .map((element) => element.getAttribute("href"))
      .filter((link) => !document.getElementById(link.slice(1))),
    scripts: document.querySelectorAll("script").length,
    images: document.querySelectorAll("img, iframe, object, embed").length,
    headings: [...document.querySelectorAll("h1, h2, h3, h4")].map((heading) => Number(heading.tagName[1])),
    text: document.body.textContent,
    background: getComputedStyle(document.body).backgroundColor,
  };
}

async function violationsOf(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  return found.violations.map(({ id, impact, nodes }) => ({
    id,
    impact,
    where: nodes.slice(0, 3).map((node) => node.html.slice(0, 200)),
  }));
}

async function inspect(browser, file, { width, scheme }) {
  const page = await browser.newPage();
  const messages = [];
  const requests = [];
  page.on("console", (message) => messages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => messages.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => messages.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => requests.push(request.url().slice(0, 100)));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  const closed = await page.evaluate(measure);
  if (process.env.NGP_SCREENSHOTS) {
    const name = `${basename(file, ".html")}-${width}-${scheme}.png`;
    await page.screenshot({ path: join(process.env.NGP_SCREENSHOTS, name), fullPage: true });
  }
  // Open tables must not widen the page either, and are checked for accessibility with the rest.
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const opened = await page.evaluate(measure);
  const violations = await violationsOf(page);
  await page.close();
  return { file, width, scheme, messages, requests, ...closed, openedScrollWidth: opened.scrollWidth, violations };
}

const browser = await puppeteer.launch({
  executablePath: chromium,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
  const answers = [];
  for (const file of pages) for (const view of views) answers.push(await inspect(browser, file, view));
  console.log(JSON.stringify(answers));
} finally {
  await browser.close();
}
