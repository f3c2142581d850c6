<?xml version="1.0" encoding="UTF-8"?>
<!-- Turns a response of /oai or /ft-oai into a page for people. Elements are matched by their local names, because
     the two endpoints speak in two namespaces. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
                xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:tf="urn:indlet:tf:1.0"
                xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" exclude-result-prefixes="dc tf oai_dc">
  <xsl:output method="html" encoding="UTF-8" indent="no" doctype-system="about:legacy-compat"/>

  <xsl:variable name="root" select="/*"/>
  <xsl:variable name="request" select="$root/*[local-name() = 'request']"/>
  <xsl:variable name="verb" select="string($request/@verb)"/>
  <xsl:variable name="extended" select="namespace-uri($root) = 'urn:indlet:ft-oai:1.0'"/>
  <!-- Lists that are reached from here keep the index format that this one shows. -->
  <xsl:variable name="index">
    <xsl:if test="$extended">
      <xsl:choose>
        <xsl:when test="$request/@indexPrefix">&amp;indexPrefix=<xsl:value-of select="$request/@indexPrefix"/></xsl:when>
        <xsl:otherwise>&amp;indexPrefix=tf_compact</xsl:otherwise>
      </xsl:choose>
    </xsl:if>
  </xsl:variable>

  <xsl:template match="/">
    <html lang="en">
      <head>
        <meta charset="utf-8"/>
        <meta name="viewport" content="width=device-width, initial-scale=1"/>
        <meta name="color-scheme" content="light dark"/>
        <title><xsl:call-template name="heading"/> · OAI-PMH</title>
        <style>
:root { --ink: #1c2427; --soft: #586368; --line: #e2dfd6; --paper: #fbfaf7; --card: #fff; --accent: #0b5f6f; --chip: #e3f0f2; --bad: #9b2c22 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebeb; --soft: #a4b0b4; --line: #2a353a; --paper: #11171a; --card: #182024; --accent: #7ccbd8; --chip: #16343b; --bad: #f2a49a }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 -apple-system, "Segoe UI", Roboto, Inter, "Noto Sans", "Helvetica Neue", system-ui, "Liberation Sans", Arial, sans-serif }
h1, h2, h3, .brand { font-family: "Iowan Old Style", Charter, "Charis SIL", "Palatino Linotype", Palatino, "Noto Serif", Georgia, serif }
header, main, footer { max-width: 58rem; margin: 0 auto; padding: 0 1.25rem }
header { padding-top: 1.6rem }
nav { display: flex; flex-wrap: wrap; gap: .3rem; padding-bottom: .9rem; border-bottom: 1px solid var(--line) }
nav a { padding: .2rem .7rem; border-radius: 99px; text-decoration: none; color: var(--accent) }
nav a:hover { background: var(--chip) }
nav a[aria-current] { background: var(--accent); color: var(--paper) }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 1.6rem 0 .2rem }
h2 { font-size: 1.1rem; line-height: 1.35; margin: 0 0 .3rem }
.note { color: var(--soft); margin: .2rem 0 1.4rem; overflow-wrap: anywhere }
a { color: var(--accent); text-underline-offset: .15em; overflow-wrap: anywhere }
a:focus-visible, summary:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px }
article, .box { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem; margin: .8rem 0 }
article.gone { opacity: .75 }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .25rem 1.2rem; margin: .4rem 0 }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
.tags { font-size: .88rem; color: var(--soft); display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin-bottom: .5rem }
.chips { display: flex; flex-wrap: wrap; gap: .3rem; margin: .5rem 0 }
.chips span { background: var(--chip); border-radius: 5px; padding: 0 .45rem; font: 13px/1.7 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere }
summary { cursor: pointer; color: var(--accent); margin-top: .5rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere }
th { font-weight: 600; color: var(--soft) }
.bad { color: var(--bad) }
.more { display: inline-block; margin: 1rem 0; padding: .5rem 1.2rem; border-radius: 8px; background: var(--accent); color: var(--paper); text-decoration: none }
code, pre { font: .86em ui-monospace, "SF Mono", Menlo, Consolas, monospace }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 }
footer { color: var(--soft); font-size: .88rem; margin-top: 2.5rem; padding-bottom: 2.5rem }
footer hr { border: 0; border-top: 1px solid var(--line) }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .5rem } }
        </style>
      </head>
      <body>
        <header>
          <nav aria-label="Verbs">
            <a href="./">Start</a>
            <xsl:call-template name="tab"><xsl:with-param name="to">Identify</xsl:with-param><xsl:with-param name="label">About</xsl:with-param></xsl:call-template>
            <xsl:call-template name="tab"><xsl:with-param name="to">ListRecords</xsl:with-param><xsl:with-param name="label">Records</xsl:with-param><xsl:with-param name="rest" select="concat('&amp;metadataPrefix=oai_dc', $index)"/></xsl:call-template>
            <xsl:call-template name="tab"><xsl:with-param name="to">ListIdentifiers</xsl:with-param><xsl:with-param name="label">Identifiers</xsl:with-param><xsl:with-param name="rest">&amp;metadataPrefix=oai_dc</xsl:with-param></xsl:call-template>
            <xsl:call-template name="tab"><xsl:with-param name="to">ListSets</xsl:with-param><xsl:with-param name="label">Sets</xsl:with-param></xsl:call-template>
            <xsl:call-template name="tab"><xsl:with-param name="to">ListMetadataFormats</xsl:with-param><xsl:with-param name="label">Metadata formats</xsl:with-param></xsl:call-template>
            <xsl:if test="$extended">
              <xsl:call-template name="tab"><xsl:with-param name="to">ListIndexFormats</xsl:with-param><xsl:with-param name="label">Index formats</xsl:with-param></xsl:call-template>
            </xsl:if>
          </nav>
        </header>
        <main>
          <h1><xsl:call-template name="heading"/></h1>
          <p class="note"><xsl:call-template name="place"/></p>
          <xsl:apply-templates select="$root/*[local-name() != 'request' and local-name() != 'responseDate']"/>
        </main>
        <footer>
          <hr/>
          <p>Answered at <xsl:value-of select="translate($root/*[local-name() = 'responseDate'], 'TZ', '  ')"/>UTC by
            <xsl:value-of select="$request"/>. Harvesters get this answer as XML:</p>
          <pre tabindex="0">curl '<xsl:value-of select="$request"/>?<xsl:for-each select="$request/@*"><xsl:if test="position() != 1">&amp;</xsl:if><xsl:value-of select="local-name()"/>=<xsl:call-template name="encoded"><xsl:with-param name="text" select="."/></xsl:call-template></xsl:for-each>'</pre>
        </footer>
      </body>
    </html>
  </xsl:template>

  <xsl:template name="tab">
    <xsl:param name="to"/><xsl:param name="label"/><xsl:param name="rest"/>
    <a href="?verb={$to}{$rest}">
      <xsl:if test="$verb = $to"><xsl:attribute name="aria-current">page</xsl:attribute></xsl:if>
      <xsl:value-of select="$label"/>
    </a>
  </xsl:template>

  <xsl:template name="heading">
    <xsl:choose>
      <xsl:when test="$root/*[local-name() = 'error']">This request cannot be answered</xsl:when>
      <xsl:when test="$verb = 'Identify'"><xsl:value-of select="$root/*/*[local-name() = 'repositoryName']"/></xsl:when>
      <xsl:when test="$verb = 'ListRecords'">Records</xsl:when>
      <xsl:when test="$verb = 'ListIdentifiers'">Identifiers</xsl:when>
      <xsl:when test="$verb = 'ListSets'">Sets</xsl:when>
      <xsl:when test="$verb = 'ListMetadataFormats'">Metadata formats</xsl:when>
      <xsl:when test="$verb = 'ListIndexFormats'">Index formats</xsl:when>
      <xsl:when test="$verb = 'GetRecord'">Record</xsl:when>
      <xsl:otherwise>OAI-PMH</xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <!-- Where in a list this page stands. -->
  <xsl:template name="place">
    <xsl:variable name="token" select="$root/*/*[local-name() = 'resumptionToken']"/>
    <xsl:variable name="shown" select="count($root/*/*[local-name() = 'record' or local-name() = 'header' or local-name() = 'set'])"/>
    <xsl:choose>
      <xsl:when test="$token/@completeListSize">
        <xsl:value-of select="concat($token/@cursor + 1, ' to ', $token/@cursor + $shown, ' of ', $token/@completeListSize)"/>
      </xsl:when>
      <xsl:when test="$shown and starts-with($verb, 'List')"><xsl:value-of select="$shown"/> in all</xsl:when>
      <xsl:when test="$request/@identifier"><xsl:value-of select="$request/@identifier"/></xsl:when>
      <xsl:otherwise><xsl:value-of select="$request"/></xsl:otherwise>
    </xsl:choose>
    <xsl:if test="$request/@set"> · set <xsl:value-of select="$request/@set"/></xsl:if>
    <xsl:if test="$request/@from"> · from <xsl:value-of select="$request/@from"/></xsl:if>
    <xsl:if test="$request/@until"> · until <xsl:value-of select="$request/@until"/></xsl:if>
  </xsl:template>

  <!-- Verbs -->

  <xsl:template match="*[local-name() = 'error']">
    <div class="box"><h2 class="bad"><xsl:value-of select="@code"/></h2><xsl:value-of select="."/></div>
  </xsl:template>

  <xsl:template match="*[local-name() = 'Identify']">
    <div class="box">
      <dl>
        <xsl:for-each select="*[local-name() != 'description' and local-name() != 'repositoryName']">
          <dt>
            <xsl:choose>
              <xsl:when test="local-name() = local-name(preceding-sibling::*[1])"/>
              <xsl:when test="local-name() = 'baseURL'">Base URL</xsl:when>
              <xsl:when test="local-name() = 'protocolVersion'">Protocol version</xsl:when>
              <xsl:when test="local-name() = 'adminEmail'">Contact</xsl:when>
              <xsl:when test="local-name() = 'earliestDatestamp'">Earliest datestamp</xsl:when>
              <xsl:when test="local-name() = 'deletedRecord'">Deleted records</xsl:when>
              <xsl:when test="local-name() = 'granularity'">Granularity</xsl:when>
              <xsl:when test="local-name() = 'compression'">Compression</xsl:when>
              <xsl:otherwise><xsl:value-of select="local-name()"/></xsl:otherwise>
            </xsl:choose>
          </dt>
          <dd><xsl:value-of select="."/></dd>
        </xsl:for-each>
      </dl>
    </div>
    <xsl:for-each select="*[local-name() = 'description']">
      <div class="box">
        <xsl:choose>
          <xsl:when test="oai_dc:dc"><xsl:apply-templates select="oai_dc:dc"/></xsl:when>
          <xsl:otherwise>
            <h2><xsl:value-of select="local-name(*)"/></h2>
            <dl>
              <xsl:for-each select=".//*[not(*)]">
                <dt><xsl:value-of select="local-name()"/></dt>
                <dd><xsl:call-template name="linked"><xsl:with-param name="value" select="concat(., @ref)"/></xsl:call-template></dd>
              </xsl:for-each>
            </dl>
          </xsl:otherwise>
        </xsl:choose>
      </div>
    </xsl:for-each>
  </xsl:template>

  <xsl:template match="*[local-name() = 'ListMetadataFormats']">
    <xsl:for-each select="*">
      <xsl:variable name="prefix" select="string(*[local-name() = 'metadataPrefix'])"/>
      <div class="box">
        <h2><xsl:value-of select="$prefix"/></h2>
        <dl>
          <dt>Namespace</dt><dd><xsl:value-of select="*[local-name() = 'metadataNamespace']"/></dd>
          <dt>Schema</dt><dd><xsl:call-template name="linked"><xsl:with-param name="value" select="*[local-name() = 'schema']"/></xsl:call-template></dd>
        </dl>
        <xsl:choose>
          <xsl:when test="$request/@identifier">
            <a><xsl:attribute name="href">?verb=GetRecord&amp;metadataPrefix=<xsl:value-of select="$prefix"/>&amp;identifier=<xsl:call-template name="encoded"><xsl:with-param name="text" select="$request/@identifier"/></xsl:call-template></xsl:attribute>The record in this format</a>
          </xsl:when>
          <xsl:otherwise><a href="?verb=ListRecords&amp;metadataPrefix={$prefix}">Records in this format</a></xsl:otherwise>
        </xsl:choose>
      </div>
    </xsl:for-each>
  </xsl:template>

  <xsl:template match="*[local-name() = 'ListIndexFormats']">
    <xsl:for-each select="*">
      <xsl:variable name="prefix" select="string(*[local-name() = 'indexPrefix'])"/>
      <div class="box">
        <h2><xsl:value-of select="$prefix"/></h2>
        <dl>
          <dt>Namespace</dt><dd><xsl:value-of select="*[local-name() = 'indexNamespace']"/></dd>
          <dt>Schema</dt><dd><xsl:call-template name="linked"><xsl:with-param name="value" select="*[local-name() = 'schema']"/></xsl:call-template></dd>
          <dt>Policy</dt><dd><pre tabindex="0"><xsl:value-of select="*[local-name() = 'policy']"/></pre></dd>
        </dl>
        <a href="?verb=ListRecords&amp;metadataPrefix=oai_dc&amp;indexPrefix={$prefix}">Records with this index part</a>
      </div>
    </xsl:for-each>
  </xsl:template>

  <xsl:template match="*[local-name() = 'ListSets']">
    <div class="box">
      <table>
        <thead><tr><th scope="col">Set</th><th scope="col">setSpec</th><th scope="col">Headers</th></tr></thead>
        <tbody>
          <xsl:for-each select="*[local-name() = 'set']">
            <xsl:variable name="spec" select="string(*[local-name() = 'setSpec'])"/>
            <tr>
              <td><a href="?verb=ListRecords&amp;metadataPrefix=oai_dc{$index}&amp;set={$spec}"><xsl:value-of select="*[local-name() = 'setName']"/></a></td>
              <td><code><xsl:value-of select="$spec"/></code></td>
              <td><a href="?verb=ListIdentifiers&amp;metadataPrefix=oai_dc&amp;set={$spec}">identifiers</a></td>
            </tr>
          </xsl:for-each>
        </tbody>
      </table>
    </div>
    <xsl:apply-templates select="*[local-name() = 'resumptionToken']"/>
  </xsl:template>

  <xsl:template match="*[local-name() = 'ListIdentifiers']">
    <div class="box">
      <table>
        <thead><tr><th scope="col">Identifier</th><th scope="col">Datestamp</th><th scope="col">Sets</th></tr></thead>
        <tbody>
          <xsl:for-each select="*[local-name() = 'header']">
            <tr>
              <td><xsl:call-template name="identifier"/></td>
              <td><xsl:call-template name="datestamp"/></td>
              <td><xsl:call-template name="sets"/></td>
            </tr>
          </xsl:for-each>
        </tbody>
      </table>
    </div>
    <xsl:apply-templates select="*[local-name() = 'resumptionToken']"/>
  </xsl:template>

  <xsl:template match="*[local-name() = 'ListRecords' or local-name() = 'GetRecord']">
    <xsl:for-each select="*[local-name() = 'record']">
      <xsl:variable name="header" select="*[local-name() = 'header']"/>
      <article>
        <xsl:if test="$header/@status"><xsl:attribute name="class">gone</xsl:attribute></xsl:if>
        <h2>
          <xsl:choose>
            <xsl:when test="$header/@status"><span class="bad">Deleted</span></xsl:when>
            <xsl:when test=".//dc:title"><xsl:value-of select=".//dc:title"/></xsl:when>
            <xsl:otherwise>Untitled</xsl:otherwise>
          </xsl:choose>
        </h2>
        <div class="tags">
          <xsl:for-each select="$header">
            <span><xsl:call-template name="identifier"/></span>
            <span><xsl:call-template name="datestamp"/></span>
            <span><xsl:call-template name="sets"/></span>
          </xsl:for-each>
        </div>
        <xsl:apply-templates select=".//oai_dc:dc"/>
        <xsl:apply-templates select=".//tf:terms"/>
      </article>
    </xsl:for-each>
    <xsl:apply-templates select="*[local-name() = 'resumptionToken']"/>
  </xsl:template>

  <xsl:template match="*[local-name() = 'resumptionToken']">
    <xsl:if test="string(.)"><a class="more" rel="next" href="?verb={$verb}&amp;resumptionToken={.}">Next page</a></xsl:if>
  </xsl:template>

  <!-- Parts -->

  <xsl:template match="oai_dc:dc">
    <dl>
      <!-- A record's first title is its heading already; a label is not repeated. -->
      <xsl:for-each select="dc:*[not(self::dc:title) or preceding-sibling::dc:title or ancestor::*[local-name() = 'description']]">
        <dt><xsl:if test="not(preceding-sibling::*[1][local-name() = local-name(current())])"><xsl:value-of select="local-name()"/></xsl:if></dt>
        <dd><xsl:call-template name="linked"><xsl:with-param name="value" select="."/></xsl:call-template></dd>
      </xsl:for-each>
    </dl>
  </xsl:template>

  <xsl:template match="tf:terms">
    <details>
      <xsl:if test="$verb = 'GetRecord'"><xsl:attribute name="open">open</xsl:attribute></xsl:if>
      <summary>Index part: <xsl:value-of select="@length"/> words<xsl:if test="@lang">, language <xsl:value-of select="@lang"/></xsl:if></summary>
      <xsl:for-each select="tf:t">
        <xsl:sort select="@f" data-type="number" order="descending"/>
        <div class="chips"><strong><xsl:value-of select="@f"/> ×</strong><span><xsl:value-of select="."/></span></div>
      </xsl:for-each>
      <xsl:if test="tf:term">
        <div class="chips">
          <xsl:for-each select="tf:term">
            <xsl:sort select="@freq" data-type="number" order="descending"/>
            <span><xsl:if test="@at"><xsl:attribute name="title">at <xsl:value-of select="@at"/></xsl:attribute></xsl:if><xsl:value-of select="@name"/><xsl:if test="@freq"><xsl:text> </xsl:text><xsl:value-of select="@freq"/></xsl:if></span>
          </xsl:for-each>
        </div>
      </xsl:if>
    </details>
  </xsl:template>

  <xsl:template name="identifier">
    <xsl:variable name="prefix">
      <xsl:choose>
        <xsl:when test="$request/@metadataPrefix"><xsl:value-of select="$request/@metadataPrefix"/></xsl:when>
        <xsl:otherwise>oai_dc</xsl:otherwise>
      </xsl:choose>
    </xsl:variable>
    <a><xsl:attribute name="href">?verb=GetRecord&amp;metadataPrefix=<xsl:value-of select="$prefix"/><xsl:value-of select="$index"/>&amp;identifier=<xsl:call-template name="encoded"><xsl:with-param name="text" select="*[local-name() = 'identifier']"/></xsl:call-template></xsl:attribute><xsl:value-of select="*[local-name() = 'identifier']"/></a>
    <xsl:if test="@status and $verb = 'ListIdentifiers'"><xsl:text> </xsl:text><span class="bad">deleted</span></xsl:if>
  </xsl:template>

  <xsl:template name="datestamp">
    <xsl:variable name="stamp" select="*[local-name() = 'datestamp']"/>
    <time datetime="{$stamp}"><xsl:value-of select="substring($stamp, 1, 10)"/><xsl:text> </xsl:text><xsl:value-of select="substring($stamp, 12, 8)"/></time>
  </xsl:template>

  <xsl:template name="sets">
    <xsl:for-each select="*[local-name() = 'setSpec']">
      <xsl:if test="position() != 1">, </xsl:if>
      <a><xsl:attribute name="href">?verb=<xsl:choose><xsl:when test="$verb = 'ListIdentifiers'">ListIdentifiers</xsl:when><xsl:otherwise>ListRecords</xsl:otherwise></xsl:choose>&amp;metadataPrefix=oai_dc<xsl:value-of select="$index"/>&amp;set=<xsl:value-of select="."/></xsl:attribute><xsl:value-of select="."/></a>
    </xsl:for-each>
  </xsl:template>

  <!-- Only addresses of the web become links: a record is not to be trusted with any other scheme. -->
  <xsl:template name="linked">
    <xsl:param name="value"/>
    <xsl:choose>
      <xsl:when test="starts-with($value, 'http://') or starts-with($value, 'https://')"><a href="{$value}" rel="nofollow"><xsl:value-of select="$value"/></a></xsl:when>
      <xsl:otherwise><xsl:value-of select="$value"/></xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <!-- XSLT 1.0 cannot encode URLs; of what an identifier may hold, these characters mean something in a query. -->
  <xsl:template name="encoded">
    <xsl:param name="text"/>
    <xsl:variable name="percent"><xsl:call-template name="replaced"><xsl:with-param name="text" select="string($text)"/><xsl:with-param name="old">%</xsl:with-param><xsl:with-param name="new">%25</xsl:with-param></xsl:call-template></xsl:variable>
    <xsl:variable name="ampersand"><xsl:call-template name="replaced"><xsl:with-param name="text" select="string($percent)"/><xsl:with-param name="old">&amp;</xsl:with-param><xsl:with-param name="new">%26</xsl:with-param></xsl:call-template></xsl:variable>
    <xsl:variable name="plus"><xsl:call-template name="replaced"><xsl:with-param name="text" select="string($ampersand)"/><xsl:with-param name="old">+</xsl:with-param><xsl:with-param name="new">%2B</xsl:with-param></xsl:call-template></xsl:variable>
    <xsl:call-template name="replaced"><xsl:with-param name="text" select="string($plus)"/><xsl:with-param name="old">#</xsl:with-param><xsl:with-param name="new">%23</xsl:with-param></xsl:call-template>
  </xsl:template>

  <!-- By halves: processors bound the depth of recursion, and an identifier may be long. -->
  <xsl:template name="replaced">
    <xsl:param name="text"/><xsl:param name="old"/><xsl:param name="new"/>
    <xsl:choose>
      <xsl:when test="not(contains($text, $old))"><xsl:value-of select="$text"/></xsl:when>
      <xsl:when test="string-length($text) = 1"><xsl:value-of select="$new"/></xsl:when>
      <xsl:otherwise>
        <xsl:variable name="half" select="floor(string-length($text) div 2)"/>
        <xsl:call-template name="replaced"><xsl:with-param name="text" select="substring($text, 1, $half)"/><xsl:with-param name="old" select="$old"/><xsl:with-param name="new" select="$new"/></xsl:call-template>
        <xsl:call-template name="replaced"><xsl:with-param name="text" select="substring($text, $half + 1)"/><xsl:with-param name="old" select="$old"/><xsl:with-param name="new" select="$new"/></xsl:call-template>
      </xsl:otherwise>
    </xsl:choose>
  </xsl:template>
</xsl:stylesheet>
